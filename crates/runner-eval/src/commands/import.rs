//! `runner eval import`: cases from tasks of Harbor, Terminal-Bench and SWE-bench.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};
use toml::{Table, Value};

use crate::args::{EvalGlobalArgs, ImportArgs, TaskFormat};
use crate::case::inline;
use crate::case::suite::LoadedCase;
use crate::files;
use crate::plan::run_name::check_name;

/// The judge of an imported task.
const TASK_JUDGE: &str = include_str!("import/task_judge.py");
const SWE_JUDGE: &str = include_str!("import/swe_judge.py");

pub(crate) struct ImportOutput(Vec<PathBuf>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &ImportArgs) -> Result<ImportOutput, CommandError> {
    let mut written = Vec::new();
    for path in &args.paths {
        let path = global.shared.project_dir.join(path);
        let fail = |error: io::Error| CommandError::io("could not import the task", &path, &error);
        let cases = match args.format {
            TaskFormat::Harbor => vec![harbor_task(&path).map_err(fail)?],
            TaskFormat::TerminalBench => vec![terminal_bench_task(&path).map_err(fail)?],
            TaskFormat::SweBench => swe_bench_tasks(&path, args.repos.as_deref()).map_err(fail)?,
        };
        for case in cases {
            let folder = global.cases().join(&case.id);
            case.write(&folder).map_err(fail)?;
            let file = folder.join("case.toml");
            LoadedCase::load(&file)?;
            written.push(file);
        }
    }
    Ok(ImportOutput(written))
}

/// A case to write. Its hidden entries are folders, or files in folders that come before them.
struct ImportedCase {
    id: String,
    goal: String,
    /// A folder of initial files, or a git bundle.
    fixture: Option<PathBuf>,
    /// What becomes `hidden/<name>`.
    hidden: Vec<HiddenEntry>,
    judge: &'static str,
    /// Options of the judge, as `hidden/options.json`.
    options: JsonValue,
    wall_secs: u64,
    /// A script that solves the task.
    solution: Option<PathBuf>,
}

struct HiddenEntry {
    name: String,
    source: PathBuf,
}

impl ImportedCase {
    fn write(&self, folder: &Path) -> io::Result<()> {
        check_name(&self.id).map_err(|error| io::Error::other(format!("`{}` {error}", self.id)))?;
        if folder.exists() {
            return Err(io::Error::other(format!("`{}` exists", folder.display())));
        }
        let hidden = folder.join("hidden");
        fs::create_dir_all(&hidden)?;
        let mut keys = String::new();
        match &self.fixture {
            Some(bundle) if bundle.is_file() => {
                fs::copy(bundle, folder.join("base.bundle"))?;
                keys.push_str("fixture = \"base.bundle\"\n");
            }
            Some(source) => {
                fs::create_dir_all(folder.join("fixture"))?;
                files::copy_files_into(source, &folder.join("fixture"))?;
                let _ = fs::remove_file(folder.join("fixture/Dockerfile"));
                keys.push_str("fixture = \"fixture\"\n");
            }
            None => {}
        }
        for HiddenEntry { name, source } in &self.hidden {
            let target = hidden.join(name);
            if source.is_file() {
                fs::copy(source, target)?;
            } else {
                fs::create_dir_all(&target)?;
                files::copy_files_into(source, &target)?;
            }
        }
        fs::write(hidden.join("options.json"), format!("{:#}\n", self.options))?;
        fs::write(hidden.join("judge.py"), self.judge)?;
        if let Some(script) = &self.solution {
            let text = fs::read_to_string(script)?;
            let run = Value::Array(["bash", "-c", &text].map(|word| Value::String(word.to_owned())).into());
            let scenario = format!(
                "[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n[[session.do]]\nrun = {{ argv = {} }}\n",
                inline(&run)
            );
            fs::write(folder.join("solution.toml"), scenario)?;
            keys.push_str("solution = \"solution.toml\"\n");
        }
        let text = |text: &str| inline(&Value::String(text.to_owned()));
        let case = format!(
            "[case]\nid = {}\ntags = [\"imported\"]\nhidden = \"hidden\"\nrequires = [\"bash\", \"python3\"]\n{keys}goal = {}\n\n\
             [limits]\nwall_secs = {}\n\n[config.guard]\ncommand = [\"true\"]\n\n\
             [[checks]]\nname = \"task tests\"\ntype = \"judge\"\ncommand = [\"python3\", \"judge.py\"]\ntimeout_secs = {}\n",
            text(&self.id),
            text(&self.goal),
            self.wall_secs,
            self.wall_secs.min(3_600)
        );
        fs::write(folder.join("case.toml"), case)
    }
}

fn task_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' }).collect()
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
}

/// A Harbor task, with one step or several. Steps become numbered parts of the goal, and each has its own tests.
fn harbor_task(path: &Path) -> io::Result<ImportedCase> {
    let text = fs::read_to_string(path.join("task.toml"))?;
    let task: Table = text.parse().map_err(io::Error::other)?;
    let mut hidden = Vec::new();
    let mut steps = Vec::new();
    let mut goal = fs::read_to_string(path.join("instruction.md")).unwrap_or_default();
    for (step, number) in task.get("steps").and_then(Value::as_array).into_iter().flatten().zip(1..) {
        let name = step.get("name").and_then(Value::as_str).unwrap_or_default();
        let folder = path.join("steps").join(name);
        let instruction = fs::read_to_string(folder.join("instruction.md"))?;
        goal.push_str(&format!("\n## Step {number}: {name}\n\n{instruction}"));
        if let Some(source) = existing(folder.join("tests")) {
            let tests = format!("step-{number}");
            let least = step.get("min_reward").and_then(Value::as_float).unwrap_or(1.0);
            steps.push(json!({ "name": name, "tests": tests, "min_reward": least }));
            hidden.push(HiddenEntry { name: tests, source });
        }
    }
    if let Some(source) = existing(path.join("tests")) {
        steps.push(json!({ "name": "tests", "tests": "tests", "min_reward": 1.0 }));
        hidden.push(HiddenEntry { name: "tests".to_owned(), source });
    }
    let timeout = task.get("agent").and_then(|agent| agent.get("timeout_sec"));
    let seconds = timeout.and_then(|value| {
        value.as_integer().map(|secs| secs.to_string()).or_else(|| Some(format!("{:.0}", value.as_float()?)))
    });
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(3_600_u64);
    Ok(ImportedCase {
        id: task_name(path),
        goal,
        fixture: existing(path.join("environment")),
        hidden,
        judge: TASK_JUDGE,
        options: json!({ "script": "test.sh", "steps": steps }),
        wall_secs: seconds.clamp(60, 604_800),
        solution: existing(path.join("solution/solve.sh")),
    })
}

/// A Terminal-Bench task. Of task.yaml only the instruction is read.
fn terminal_bench_task(path: &Path) -> io::Result<ImportedCase> {
    let yaml = fs::read_to_string(path.join("task.yaml"))?;
    let mut hidden: Vec<HiddenEntry> = Vec::new();
    hidden
        .extend(existing(path.join("tests")).map(|source| HiddenEntry { name: "tests".to_owned(), source }));
    hidden.extend(
        existing(path.join("run-tests.sh"))
            .map(|source| HiddenEntry { name: "tests/run-tests.sh".to_owned(), source }),
    );
    Ok(ImportedCase {
        id: task_name(path),
        goal: yaml_text(&yaml, "instruction")
            .ok_or_else(|| io::Error::other("task.yaml has no instruction"))?,
        fixture: None,
        hidden,
        judge: TASK_JUDGE,
        options: json!({
            "script": "run-tests.sh",
            "steps": [{ "name": "tests", "tests": "tests", "min_reward": 1.0 }],
        }),
        wall_secs: 3_600,
        solution: existing(path.join("solution.sh")),
    })
}

/// The value of a top-level key: a plain or quoted line, or an indented block after `|` or `>`.
fn yaml_text(yaml: &str, key: &str) -> Option<String> {
    let mut lines = yaml.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim))?;
    if !value.starts_with(['|', '>']) {
        return Some(value.trim_matches(['"', '\'']).to_owned());
    }
    let block: Vec<&str> =
        lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t'])).collect();
    let indent =
        block.iter().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indent.min().unwrap_or(0);
    let text: Vec<&str> = block.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
    Some(text.join(if value.starts_with('>') { " " } else { "\n" }).trim().to_owned())
}

/// The keys of a SWE-bench instance that are used.
#[derive(Deserialize)]
struct SweInstance {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    test_patch: String,
    #[serde(rename = "FAIL_TO_PASS")]
    fail_to_pass: JsonValue,
    #[serde(rename = "PASS_TO_PASS")]
    pass_to_pass: JsonValue,
}

fn swe_bench_tasks(path: &Path, repos: Option<&Path>) -> io::Result<Vec<ImportedCase>> {
    let mut cases = Vec::new();
    for line in fs::read_to_string(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let instance: SweInstance = serde_json::from_str(line)?;
        let bundle =
            repos.unwrap_or(Path::new(".")).join(format!("{}.bundle", instance.repo.replace('/', "__")));
        if !bundle.is_file() {
            return Err(io::Error::other(format!(
                "`{}` is missing: make it with git bundle create",
                bundle.display()
            )));
        }
        cases.push(ImportedCase {
            id: instance.instance_id,
            goal: instance.problem_statement,
            fixture: Some(bundle),
            hidden: Vec::new(),
            judge: SWE_JUDGE,
            options: json!({
                "base_commit": instance.base_commit,
                "test_patch": instance.test_patch,
                "fail_to_pass": test_names(&instance.fail_to_pass),
                "pass_to_pass": test_names(&instance.pass_to_pass),
            }),
            wall_secs: 3_600,
            solution: None,
        });
    }
    Ok(cases)
}

/// Test names are a list, or a text that holds a JSON list.
fn test_names(value: &JsonValue) -> JsonValue {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

impl CommandOutput for ImportOutput {
    fn json(&self) -> JsonValue {
        let files: Vec<String> = self.0.iter().map(|file| file.display().to_string()).collect();
        json!({ "schema": "runner.eval.import/1", "cases": files })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.0.iter().map(|file| KeyValueLine::new().with("case", file.display())).collect()
    }

    fn human(&self, _: &Styler) -> String {
        let list: String = self.0.iter().map(|file| format!("{}\n", file.display())).collect();
        format!("{list}Next: runner eval lint --tag imported\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_is_read_from_a_line_or_a_block() {
        assert_eq!(yaml_text("a: 1\ninstruction: \"do it\"\n", "instruction").as_deref(), Some("do it"));
        let block = "instruction: |-\n  Do this.\n\n    indented\nother: x\n";
        assert_eq!(yaml_text(block, "instruction").as_deref(), Some("Do this.\n\n  indented"));
        assert_eq!(yaml_text("x: y\n", "instruction"), None);
    }

    #[test]
    fn test_names_may_be_a_text_with_a_list() {
        assert_eq!(test_names(&json!("[\"a\", \"b\"]")), json!(["a", "b"]));
        assert_eq!(test_names(&json!(["c"])), json!(["c"]));
    }
}
