//! `runner eval import`: cases from tasks of Harbor, Terminal-Bench and SWE-bench.

mod harbor;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};
use toml::Value;

use crate::args::{EvalGlobalArgs, ImportArgs, TaskFormat};
use crate::case::inline;
use crate::case::suite::LoadedCase;
use crate::files;
use crate::plan::run_name::check_name;

/// The judge of an imported task.
const TASK_JUDGE: &str = include_str!("import/task_judge.py");
const STEP_CHECK: &str = include_str!("import/step_check.py");
const SWE_JUDGE: &str = include_str!("import/swe_judge.py");

const SETUP_KEY: &str = "setup = [\"bash\", \"setup.sh\"]\n";
/// Checks the base commit of an instance out, and removes everything after it: the fix is there.
const SWE_SETUP: &str = "set -e\n\
    git checkout -q -B work BASE\n\
    git for-each-ref --format='delete %(refname)' | grep -v ' refs/heads/work$' | git update-ref --stdin\n\
    git reflog expire --expire=now --all\n\
    git gc -q --prune=now\n";

pub(crate) struct ImportOutput(Vec<PathBuf>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &ImportArgs) -> Result<ImportOutput, CommandError> {
    let mut written = Vec::new();
    for path in &args.paths {
        let path = global.shared.project_dir.join(path);
        let fail = |error: io::Error| CommandError::io("could not import the task", &path, &error);
        let cases = match args.format {
            TaskFormat::Harbor => vec![harbor::harbor_task(&path).map_err(fail)?],
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
    initial: InitialFiles,
    /// Entries of the folder `hidden/`.
    hidden: Vec<HiddenEntry>,
    /// Options of the judge, as `hidden/options.json`.
    options: JsonValue,
    wall_secs: u64,
    network: bool,
    /// A script that solves the task.
    solution: Option<PathBuf>,
    /// A patch that solves it.
    patch: String,
    /// The tasks of its plan.
    plan: Vec<PlanStep>,
}

/// What the repository of a trial starts with.
#[derive(Default)]
struct InitialFiles {
    /// A folder, or a git bundle.
    fixture: Option<PathBuf>,
    /// Folders of files that steps add.
    of_steps: Vec<PathBuf>,
    /// A script that prepares the repository.
    setup: Option<String>,
}

struct HiddenEntry {
    name: String,
    source: PathBuf,
}

/// A step of a task, which becomes a task of the plan with a check.
struct PlanStep {
    id: String,
    title: String,
    goal: String,
    /// Folders with the files of its tests; later ones replace files of earlier ones.
    tests: Vec<PathBuf>,
    /// What its check needs to know.
    options: JsonValue,
    solution: Option<PathBuf>,
}

impl ImportedCase {
    /// Without anything but the options of its judge.
    fn new(options: JsonValue) -> Self {
        Self {
            id: String::new(),
            goal: String::new(),
            initial: InitialFiles::default(),
            hidden: Vec::new(),
            options,
            wall_secs: 3_600,
            network: true,
            solution: None,
            patch: String::new(),
            plan: Vec::new(),
        }
    }

    /// Instances of SWE-bench have a judge of their own.
    fn judge(&self) -> &'static str {
        if self.options.get("test_patch").is_some() { SWE_JUDGE } else { TASK_JUDGE }
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        check_name(&self.id).map_err(|error| io::Error::other(format!("`{}` {error}", self.id)))?;
        if folder.exists() {
            return Err(io::Error::other(format!("`{}` exists", folder.display())));
        }
        let hidden = folder.join("hidden");
        fs::create_dir_all(&hidden)?;
        let mut keys = self.write_fixture(folder)?;
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
        fs::write(hidden.join("judge.py"), self.judge())?;
        if !self.plan.is_empty() {
            self.write_plan(&folder.join("plan"))?;
            keys.push_str("plan = \"plan\"\n");
        }
        let scenario = self.scenario()?;
        if !scenario.is_empty() {
            fs::write(folder.join("solution.toml"), scenario)?;
            keys.push_str("solution = \"solution.toml\"\n");
        }
        let text = |text: &str| inline(&Value::String(text.to_owned()));
        let environment = if self.network { "" } else { "[environment]\nnetwork = false\n\n" };
        let case = format!(
            "[case]\nid = {}\ntags = [\"imported\"]\nhidden = \"hidden\"\nrequires = [\"bash\", \"python3\"]\n{keys}goal = {}\n\n\
             [limits]\nwall_secs = {}\n\n{environment}[config.guard]\ncommand = [\"true\"]\n\n\
             [[checks]]\nname = \"task tests\"\ntype = \"judge\"\ncommand = [\"python3\", \"judge.py\"]\ntimeout_secs = {}\n",
            text(&self.id),
            text(&self.goal),
            self.wall_secs,
            self.wall_secs.min(3_600)
        );
        fs::write(folder.join("case.toml"), case)
    }

    /// Writes the initial files and returns the keys of the case that name them.
    fn write_fixture(&self, folder: &Path) -> io::Result<String> {
        if let Some(bundle) = self.initial.fixture.as_ref().filter(|fixture| fixture.is_file()) {
            fs::copy(bundle, folder.join("base.bundle"))?;
            let mut keys = "fixture = \"base.bundle\"\n".to_owned();
            if let Some(setup) = &self.initial.setup {
                fs::write(folder.join(harbor::SETUP_SCRIPT), setup)?;
                keys.push_str(SETUP_KEY);
            }
            return Ok(keys);
        }
        if self.initial.fixture.is_none() && self.initial.of_steps.is_empty() {
            return Ok(String::new());
        }
        let target = folder.join("fixture");
        fs::create_dir_all(&target)?;
        for source in self.initial.fixture.iter().chain(&self.initial.of_steps) {
            files::copy_files_into(source, &target)?;
        }
        for name in ["Dockerfile", "docker-compose.yaml"] {
            let _ = fs::remove_file(target.join(name));
        }
        let mut keys = "fixture = \"fixture\"\n".to_owned();
        // Scripts of steps run before the first commit, and are not part of it.
        let setup = target.join(harbor::SETUP_SCRIPT);
        if setup.is_file() {
            fs::rename(setup, folder.join(harbor::SETUP_SCRIPT))?;
            keys.push_str(SETUP_KEY);
        }
        Ok(keys)
    }

    /// Writes the tasks, and for each its tests as a check.
    fn write_plan(&self, folder: &Path) -> io::Result<()> {
        let mut stories = Vec::new();
        for (step, priority) in self.plan.iter().zip(1..) {
            stories.push(json!({
                "id": step.id,
                "title": step.title,
                "description": step.goal,
                "acceptanceCriteria": ["the tests of this step pass"],
                "priority": priority,
            }));
            let node = folder.join("nodes").join(&step.id);
            fs::create_dir_all(&node)?;
            // The files of a check have no folders beside it; later files replace earlier ones of the same name.
            let mut check_files = BTreeMap::new();
            for source in &step.tests {
                for path in files::relative_files(source)? {
                    let inside = format!("tests/{}", path.display());
                    let name = inside.replace('/', "__");
                    fs::copy(source.join(&path), node.join(&name))?;
                    check_files.insert(inside, name);
                }
            }
            let mut options = step.options.clone();
            if let (Some(options), Some(script)) = (options.as_object_mut(), self.options.get("script")) {
                options.insert("script".to_owned(), script.clone());
            }
            for (name, text) in
                [("options.json", format!("{options:#}\n")), ("step_check.py", STEP_CHECK.to_owned())]
            {
                fs::write(node.join(name), text)?;
                check_files.insert(name.to_owned(), name.to_owned());
            }
            fs::write(node.join("checks.toml"), checks_text(&step.id, &check_files))?;
        }
        fs::write(folder.join("plan.json"), format!("{:#}\n", json!({ "userStories": stories })))
    }

    /// The scenario of the reference solution: a session for each step that has one. Empty without any.
    fn scenario(&self) -> io::Result<String> {
        let mut scenario = String::new();
        for step in &self.plan {
            let when = format!("when = {{ node = {} }}\n", inline(&Value::String(step.id.clone())));
            scenario.push_str(&solving_session(&when, step.solution.as_deref())?);
        }
        scenario.push_str(&solving_session("", self.solution.as_deref())?);
        if !self.patch.is_empty() {
            scenario.push_str(&patching_session(&self.patch));
        }
        Ok(scenario)
    }
}

/// A session that runs a script of the reference solution. Scripts name the folder of the work in a container.
fn solving_session(when: &str, script: Option<&Path>) -> io::Result<String> {
    let Some(script) = script else { return Ok(String::new()) };
    let text = fs::read_to_string(script)?.replace("/app/", "./").replace("/app", ".");
    let run = Value::Array(["bash", "-c", &text].map(|word| Value::String(word.to_owned())).into());
    Ok(format!(
        "[[session]]\n{when}answer = {{ status = \"done\", summary = \"done\" }}\n[[session.do]]\nrun = {{ argv = {} }}\n",
        inline(&run)
    ))
}

/// A session that applies a patch.
fn patching_session(patch: &str) -> String {
    let file = ".solution.patch";
    let text = inline(&Value::String(patch.to_owned()));
    format!(
        "[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n\
         [[session.do]]\nwrite = {{ path = \"{file}\", text = {text} }}\n\
         [[session.do]]\nrun = {{ argv = [\"git\", \"apply\", \"--whitespace=nowarn\", \"{file}\"] }}\n\
         [[session.do]]\ndelete = {{ path = \"{file}\" }}\n"
    )
}

/// The file of checks of a step: one check. `check_files` has the names of its files by their paths in the step's folder.
fn checks_text(id: &str, check_files: &BTreeMap<String, String>) -> String {
    let mut entries = Vec::new();
    for (path, name) in check_files {
        let target = Value::String(format!(".steps/{id}/{path}"));
        entries.push(format!("{} = {}", inline(&target), inline(&Value::String(name.clone()))));
    }
    format!(
        "[[check]]\nname = \"tests\"\ncommand = [\"python3\", \".steps/{id}/step_check.py\"]\nfiles = {{ {} }}\n",
        entries.join(", ")
    )
}

fn task_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' }).collect()
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
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
    let options = json!({
        "script": "run-tests.sh",
        "steps": [{ "name": "tests", "tests": ["tests"], "min_reward": 1.0 }],
    });
    Ok(ImportedCase {
        id: task_name(path),
        goal: yaml_text(&yaml, "instruction")
            .ok_or_else(|| io::Error::other("task.yaml has no instruction"))?,
        hidden,
        solution: existing(path.join("solution.sh")),
        ..ImportedCase::new(options)
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
    /// The reference solution.
    #[serde(default)]
    patch: String,
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
        let options = json!({
            "base_commit": instance.base_commit,
            "test_patch": instance.test_patch,
            "fail_to_pass": test_names(&instance.fail_to_pass),
            "pass_to_pass": test_names(&instance.pass_to_pass),
        });
        cases.push(ImportedCase {
            id: instance.instance_id,
            goal: instance.problem_statement,
            patch: instance.patch,
            initial: InitialFiles {
                fixture: Some(bundle),
                setup: Some(SWE_SETUP.replace("BASE", &instance.base_commit)),
                ..InitialFiles::default()
            },
            ..ImportedCase::new(options)
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
