//! Harbor tasks. A task with steps becomes a plan: each step is a task of its own, with the step's tests as its check.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;
use toml::{Table, Value};

use super::{HiddenEntry, ImportedCase, InitialFiles, PlanStep, existing, task_name};
use crate::case::inline;

/// The script that judges a task or a step, in `tests/`.
const TEST_SCRIPT: &str = "test.sh";
/// Reserved in the files of a step: it runs before the agent.
pub(super) const SETUP_SCRIPT: &str = "setup.sh";

pub(super) fn harbor_task(path: &Path) -> io::Result<ImportedCase> {
    let text = fs::read_to_string(path.join("task.toml"))?;
    let task: Table = text.parse().map_err(io::Error::other)?;
    let steps = task.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut case = ImportedCase {
        id: task_name(path),
        goal: fs::read_to_string(path.join("instruction.md")).unwrap_or_default(),
        initial: InitialFiles { fixture: existing(path.join("environment")), ..InitialFiles::default() },
        wall_secs: seconds(task.get("agent")).unwrap_or(3_600),
        network: network(task.get("environment")),
        ..ImportedCase::new(json!({ "script": TEST_SCRIPT, "steps": [] }))
    };
    if steps.is_empty() {
        add_single_step(&mut case, path, &task);
    } else {
        add_steps(&mut case, path, &task, &steps)?;
    }
    Ok(case)
}

fn add_single_step(case: &mut ImportedCase, path: &Path, task: &Table) {
    let env = variables(task.get("verifier"));
    case.options = json!({
        "script": TEST_SCRIPT,
        "steps": [{ "name": "tests", "tests": ["tests"], "min_reward": 1.0, "env": env }],
    });
    case.hidden.extend(hidden_tests(path, "tests"));
    case.solution = existing(path.join("solution/solve.sh"));
}

fn add_steps(case: &mut ImportedCase, path: &Path, task: &Table, steps: &[Value]) -> io::Result<()> {
    let shared = existing(path.join("tests"));
    case.hidden.extend(hidden_tests(path, "tests"));
    let mut options = Vec::new();
    for step in steps {
        let name = step.get("name").and_then(Value::as_str).unwrap_or_default();
        let id: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
        let folder = path.join("steps").join(name);
        let instruction = fs::read_to_string(folder.join("instruction.md"))?;
        let mut env = variables(task.get("verifier"));
        env.extend(variables(step.get("verifier")));
        // The shared files come first; files of the step with the same name replace them.
        let mut tests: Vec<String> = shared.iter().map(|_| "tests".to_owned()).collect();
        if let Some(source) = existing(folder.join("tests")) {
            tests.push(format!("step-{id}"));
            case.hidden.push(HiddenEntry { name: format!("step-{id}"), source });
        }
        let least = min_reward(step);
        let entry = json!({ "name": name, "node": id, "tests": tests, "min_reward": least, "env": env });
        case.plan.push(PlanStep {
            id: id.clone(),
            title: name.to_owned(),
            goal: instruction,
            tests: shared.iter().cloned().chain(existing(folder.join("tests"))).collect(),
            options: entry.clone(),
            solution: existing(folder.join("solution/solve.sh")),
        });
        options.push(entry);
        case.initial.of_steps.extend(existing(folder.join("workdir")));
    }
    if case.goal.trim().is_empty() {
        case.goal = format!("# {}\n\nDo the steps of the plan, one after the other.\n", case.id);
    }
    case.options = json!({ "script": TEST_SCRIPT, "steps": options });
    // Steps have solutions of their own; one for the whole task is for those that have none.
    case.solution = existing(path.join("solution/solve.sh"));
    Ok(())
}

fn hidden_tests(path: &Path, name: &str) -> Option<HiddenEntry> {
    existing(path.join("tests")).map(|source| HiddenEntry { name: name.to_owned(), source })
}

/// The reward that a step needs: a number, or the one for the key `reward`. Without it, everything.
fn min_reward(step: &Value) -> f64 {
    let value = step.get("min_reward");
    let value = value.and_then(|value| value.get("reward")).or(value);
    let float = value.and_then(Value::as_float);
    #[expect(clippy::cast_precision_loss, reason = "rewards are small")]
    float.or_else(|| value.and_then(Value::as_integer).map(|number| number as f64)).unwrap_or(1.0)
}

/// The variables of a verifier.
fn variables(verifier: Option<&Value>) -> BTreeMap<String, String> {
    let table = verifier.and_then(|verifier| verifier.get("env")).and_then(Value::as_table);
    let mut variables = BTreeMap::new();
    for (name, value) in table.into_iter().flatten() {
        variables.insert(name.clone(), value.as_str().map_or_else(|| inline(value), str::to_owned));
    }
    variables
}

fn seconds(table: Option<&Value>) -> Option<u64> {
    let value = table?.get("timeout_sec")?;
    let text = value
        .as_integer()
        .map(|secs| secs.to_string())
        .or_else(|| Some(format!("{:.0}", value.as_float()?)))?;
    text.parse().ok().map(|secs: u64| secs.clamp(60, 604_800))
}

/// Tasks name the network policy in one of two ways, the second of which is older.
fn network(environment: Option<&Value>) -> bool {
    let Some(environment) = environment else { return true };
    let is_cut = environment.get("network_mode").and_then(Value::as_str) == Some("no-network");
    let is_allowed = environment.get("allow_internet").and_then(Value::as_bool).unwrap_or(true);
    is_allowed && !is_cut
}
