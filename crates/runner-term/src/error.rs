//! Every error in words: what could not be done, why, and what to do next.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use runner_core::layout::Doc;
use runner_core::runs::edit::EditError;
use runner_core::runs::import::InsertError;
use runner_core::runs::start::StartError;
use runner_host::Error;
use runner_host::UserError;
use serde_json::{Value, json};

use crate::output::CommandExit;
use crate::style::{Styler, TextRole};

/// An error, ready to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// A stable word for programs.
    code: &'static str,
    what: String,
    causes: Vec<String>,
    /// Lines that belong to the last cause: paths, faults, another program's words.
    details: Vec<String>,
    hints: Vec<String>,
    exit: CommandExit,
}

impl CommandError {
    /// An error without a cause in the host.
    pub fn new(code: &'static str, exit: CommandExit, what: impl Into<String>) -> Self {
        let (causes, details, hints) = (Vec::new(), Vec::new(), Vec::new());
        Self { code, what: what.into(), causes, details, hints, exit }
    }

    /// Something that the user can mend in what was typed or written.
    pub fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(code, CommandExit::REFUSED, what)
    }

    /// The operating system refused.
    pub fn io(what: impl Into<String>, path: &Path, error: &io::Error) -> Self {
        let hints = io_hints(error);
        let report = Self::new(io_code(error), CommandExit::FAILURE, what);
        Self { hints, ..report }.cause(format!("`{}`: {error}", path.display()))
    }

    /// An error that another process of ours ended with, as [`Report::json`] wrote it.
    pub fn from_json(told: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let list = told.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let what = told.get("message").and_then(Value::as_str).unwrap_or("a worker failed");
        let report = Self::new("worker", CommandExit::FAILURE, what);
        Self { causes: texts("causes"), details: texts("details"), hints: texts("hints"), ..report }
    }

    /// An error of the host, in the course of doing something.
    pub fn from_host(what: &str, error: impl Into<Error>) -> Self {
        let error = error.into();
        let (code, exit, details, hints) = match &error {
            Error::Refused(refusal) => {
                let (code, details, hints) = user_error_hints(refusal);
                // What an agent did to the repository is no fault of the user's input.
                let is_gone = matches!(refusal, UserError::GitFolderGone(_));
                (code, if is_gone { CommandExit::FAILURE } else { CommandExit::REFUSED }, details, hints)
            }
            Error::Locked { holder } => {
                let details = if holder.is_empty() { Vec::new() } else { vec![holder.clone()] };
                let hints = [
                    "let a loop stand still between two iterations: 'runner pause --wait', and then try again",
                    "or wait until it ends; the lock goes with its process",
                ];
                ("locked", CommandExit::FAILURE, details, hints.map(str::to_owned).into())
            }
            Error::Io { source, .. } => (io_code(source), CommandExit::FAILURE, Vec::new(), io_hints(source)),
            Error::Git { stderr, .. } => ("git", CommandExit::FAILURE, lines(stderr), Vec::new()),
            Error::GitOutput { .. } => {
                let hint = "run 'runner doctor' and check git's version";
                ("git", CommandExit::FAILURE, Vec::new(), vec![hint.to_owned()])
            }
            Error::Journal { path } => {
                let hint = "finish it with the version of runner that began it";
                ("journal", CommandExit::FAILURE, vec![path.display().to_string()], vec![hint.to_owned()])
            }
            Error::Internal(_) => ("internal", CommandExit::FAILURE, Vec::new(), Vec::new()),
        };
        let mut causes = vec![error.to_string()];
        causes.extend(
            std::iter::successors(error.source(), |cause: &&dyn StdError| (*cause).source())
                .map(ToString::to_string),
        );
        causes.dedup();
        Self { code, what: what.to_owned(), causes, details, hints, exit }
    }

    /// Adds why.
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds lines that belong to the last cause.
    pub fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The exit code.
    pub fn exit(&self) -> CommandExit {
        self.exit
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "schema": "runner.error/1",
            "code": self.code,
            "message": self.what,
            "causes": self.causes,
            "details": self.details,
            "hints": self.hints,
            "exit": self.exit.0,
        })
    }

    /// For people.
    pub fn render(&self, pen: &Styler) -> String {
        let mut text = format!("{} {}\n", pen.paint(TextRole::Bad, "error:"), self.what);
        for cause in &self.causes {
            text.push_str(&labelled(&pen.paint(TextRole::Strong, "caused by:"), cause));
        }
        for detail in &self.details {
            text.push_str("  ");
            text.push_str(detail);
            text.push('\n');
        }
        for hint in &self.hints {
            text.push_str(&labelled(&pen.paint(TextRole::Active, "hint:"), hint));
        }
        text
    }
}

fn labelled(label: &str, text: &str) -> String {
    format!("{label} {text}\n")
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(runner_core::text::one_line).filter(|line| !line.is_empty()).collect()
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn io_code(error: &io::Error) -> &'static str {
    if is_full(error) { "disk_full" } else { "io" }
}

fn io_hints(error: &io::Error) -> Vec<String> {
    let hint = if is_full(error) {
        "free some space and run the same command again: nothing was lost"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "check who owns the file and whether you may write there"
    } else {
        return Vec::new();
    };
    vec![hint.to_owned()]
}

/// A word for programs, lines that belong to it, and what to do about it.
#[expect(clippy::too_many_lines, reason = "one flat table, an arm a refusal")]
fn user_error_hints(refusal: &UserError) -> (&'static str, Vec<String>, Vec<String>) {
    let none = Vec::new;
    let hint = |text: &str| vec![text.to_owned()];
    match refusal {
        UserError::NoGit => ("no_git", none(), hint("install git 2.36 or newer")),
        UserError::OldGit { .. } => ("old_git", none(), hint("install git 2.36 or newer")),
        UserError::NoRepository { stderr, .. } => (
            "no_repository",
            lines(stderr),
            hint("go to a repository, or make one: git init && git commit --allow-empty -m root"),
        ),
        UserError::Bare(_) => ("bare", none(), hint("run it in a clone or a work tree of that repository")),
        UserError::LineBreak => ("line_break", none(), hint("move the repository to a path without one")),
        UserError::NoCommit => {
            ("no_commit", none(), hint("make one: git commit --allow-empty -m root, then run 'runner start'"))
        }
        UserError::Busy(operation) => {
            ("busy", none(), vec![format!("finish it, or give it up with '{}'", operation.abort())])
        }
        UserError::IndexLocked(lock) => (
            "index_locked",
            vec![lock.display().to_string()],
            hint("wait for the other git command; if there is none, remove that file"),
        ),
        UserError::Dirty { paths, more } => {
            let rest = (*more > 0).then(|| format!("and {more} more"));
            let paths = paths.iter().cloned().chain(rest).collect();
            (
                "dirty",
                paths,
                hint("commit them, or set them aside with 'git stash -u', then run 'runner start'"),
            )
        }
        UserError::HeldElsewhere { worktree, .. } => {
            let text = format!("go there and run it: runner -C {worktree} start");
            ("held_elsewhere", vec![worktree.clone()], vec![text])
        }
        UserError::BranchInTheWay => {
            ("branch_in_the_way", none(), hint("rename it: git branch -m runner another-name"))
        }
        UserError::SwitchBlocked { stderr, .. } => {
            ("switch_blocked", lines(stderr), hint("move those files away, then run 'runner start'"))
        }
        UserError::Filter(name) => (
            "filter",
            none(),
            vec![format!(
                "if you trust it, add \"{name}\" to `filters` under [git] in .runner/state/config.toml"
            )],
        ),
        UserError::NotAFile { .. } | UserError::NotAFolder { .. } => (
            "not_a_file",
            none(),
            hint("put a plain file or folder in its place: the runner follows no links"),
        ),
        UserError::Tools { faults } => {
            ("tools", faults.clone(), hint("mend or remove those files, then run 'runner start' again"))
        }
        UserError::NoSandbox { why, fix } => (
            "no_sandbox",
            vec![why.clone()],
            vec![format!(
                "{fix}, or set sandbox = \"auto\" under [executor] in {} and let no tools.json limit the \
                 network or folders",
                Doc::Config.path()
            )],
        ),
        UserError::TooLarge { .. } => ("too_large", none(), hint("make it smaller, or restore it from git")),
        UserError::GitFolderGone(_) => {
            ("git_folder_gone", none(), hint("look at what happened to it before anything else is done"))
        }
        UserError::Identity(_) => ("identity", none(), none()),
        UserError::RunnerChanged { paths, .. } => (
            "runner_changed",
            paths.clone(),
            hint("take the changes in with 'runner start', or undo them with git"),
        ),
        UserError::Prompt(_) => {
            ("prompt", none(), hint("mend the template or raise the budget, then run 'runner start'"))
        }
        UserError::NotSetUp(_) => {
            ("not_set_up", none(), hint("run 'runner init', or 'runner start --goal \"…\"'"))
        }
        UserError::MissingDoc(_) => ("missing", none(), hint("run 'runner start' to write what is missing")),
        UserError::Start(fault) => explain_start(fault),
        UserError::Edit(fault) => explain_edit(fault),
        UserError::NoSuchRun { wanted, runs } => ("no_such_run", none(), which_run(wanted, runs)),
        UserError::RunExists(run) => (
            "run_exists",
            none(),
            vec![format!("choose another name with --id, or go there: git switch {}", run.branch())],
        ),
        UserError::NoForkName(_) => ("no_fork_name", none(), hint("name the new run: --id NAME")),
        UserError::NoSuchRevision(_) => (
            "no_such_revision",
            none(),
            hint("name commits as git does: a branch, a tag, HEAD~3, a commit's id"),
        ),
        UserError::NotARun(_) => (
            "not_a_run",
            none(),
            hint("name a run, a commit on its branch, or a range: runner verify runner/<id>"),
        ),
        UserError::NoRuns => {
            ("no_runs", none(), hint("begin one with 'runner start', or fetch its branch: git fetch origin"))
        }
        UserError::WhichRun { runs } => {
            ("which_run", runs.clone(), hint("name one of them, or check its branch out"))
        }
        UserError::MissingObject(_) => {
            ("missing_object", none(), hint("fetch the whole branch: git fetch --refetch origin"))
        }
        UserError::RunInProgress(_) => (
            "run_under_way",
            none(),
            hint("to begin another run, remove `id` from .runner/GOAL.md and run 'runner start'"),
        ),
    }
}

/// What was meant by a run that is not there.
fn which_run(wanted: &str, runs: &[String]) -> Vec<String> {
    let known: Vec<&str> = runs.iter().map(String::as_str).collect();
    let near = runner_core::strict::nearest(wanted, &known);
    match (near, runs.is_empty()) {
        (Some(near), _) => vec![format!("did you mean `{near}`?")],
        (None, true) => {
            vec!["there is no run here: fetch its branch, or begin one with 'runner start'".to_owned()]
        }
        (None, false) => vec![format!("runs here: {}", runs.join(", "))],
    }
}

fn explain_start(fault: &StartError) -> (&'static str, Vec<String>, Vec<String>) {
    match fault {
        StartError::Goal(_) => ("goal", Vec::new(), vec!["mend .runner/GOAL.md, then run 'runner start'".to_owned()]),
        StartError::GoalTaken => (
            "goal_taken",
            Vec::new(),
            vec![
                "for a new run, remove `id` from .runner/GOAL.md, write the new goal there, and run 'runner start'"
                    .to_owned(),
                "to go on with the goal that is there, leave --goal out".to_owned(),
            ],
        ),
        StartError::GoalEmpty => ("goal_empty", Vec::new(), vec!["say what you want to reach".to_owned()]),
        StartError::Config(problems) => (
            "config",
            told(problems),
            vec!["mend .runner/state/config.toml, then run 'runner start'".to_owned()],
        ),
        StartError::Tree(problems) => (
            "tree",
            told(problems),
            vec!["mend .runner/state/tree.json, or undo: git checkout -- .runner/state/tree.json".to_owned()],
        ),
        StartError::RunState(problems) => (
            "run_state",
            told(problems),
            vec!["restore it from an earlier commit of the run's branch".to_owned()],
        ),
        StartError::TreeEdit(faults) => (
            "tree_edit",
            told(faults),
            vec!["mend .runner/state/tree.json, or undo: git checkout -- .runner/state/tree.json".to_owned()],
        ),
        StartError::Plan(fault) => insert_error_hints(fault),
        StartError::WouldLose(docs) => (
            "would_lose",
            docs.iter().map(|doc| doc.path().to_owned()).collect(),
            vec!["move them away or undo the changes, then run 'runner start'".to_owned()],
        ),
    }
}

/// Why a plan cannot go into the tree, and what to do about it.
pub fn insert_error_hints(fault: &InsertError) -> (&'static str, Vec<String>, Vec<String>) {
    let (details, hint) = match fault {
        InsertError::NoSuchNode(_) => (Vec::new(), "see 'runner tree' for the nodes"),
        InsertError::Passed(_) => {
            (Vec::new(), "choose an open node with --under, or begin a new run with 'runner start'")
        }
        InsertError::Nothing(_) => {
            (Vec::new(), "to do what is done once more, import it as open work: --include-done")
        }
        InsertError::Tree(problems) => (told(problems), "import a smaller part, or below another node"),
    };
    ("plan", details, vec![hint.to_owned()])
}

/// Why an edit of the user's cannot be made, and what can.
fn explain_edit(fault: &EditError) -> (&'static str, Vec<String>, Vec<String>) {
    let (details, hint) = match fault {
        EditError::Tree(problems) => (told(problems), "choose an id, numbers and texts within the limits"),
        EditError::RunnerOwned(faults) => (told(faults), "leave that node as it is, and add a new one"),
        EditError::NoSuchNode(_) => (Vec::new(), "see 'runner tree' for the nodes"),
        EditError::Passed(_) => {
            (Vec::new(), "add a new node for what is missing: runner node add PARENT --title \"…\"")
        }
        EditError::PassedBelow { .. } => {
            (Vec::new(), "remove what is open below it, one by one; 'runner tree --open' lists it")
        }
        EditError::UnderPassed(_) => (
            Vec::new(),
            "choose an open node, see 'runner tree --open'; if all passes, write a new goal and 'runner start'",
        ),
        EditError::Root(_) => (Vec::new(), "reword it instead: runner node edit, or edit .runner/GOAL.md"),
        EditError::NotALeaf(_) => {
            (Vec::new(), "name one of its leaves, see 'runner tree', or add to it with 'runner node add'")
        }
        EditError::UnderItself { .. } => (Vec::new(), "name a node that is not below it"),
        EditError::NotASibling { .. } => (Vec::new(), "name a child of that node, see 'runner tree'"),
        EditError::NoRoom(_) => (Vec::new(), "give it a number of its own: --order N"),
        EditError::Taken(_) => (Vec::new(), "give it another id: --id ID"),
        EditError::Nothing => (Vec::new(), "see how it is with 'runner show NODE'"),
        EditError::NoTitle | EditError::NoText => (Vec::new(), "write what you want to say"),
        EditError::TooLong { .. } => (
            Vec::new(),
            "put a long text into .runner/nodes/<id>/context.md and take it in with 'runner start'",
        ),
        EditError::TooFewParts => {
            (Vec::new(), "give --into twice or more, or reword the leaf with 'runner node edit'")
        }
        EditError::BelowAttempts { .. } => (Vec::new(), "choose that number or a larger one"),
        EditError::NoSuchQuestion { count: 0, .. } => (Vec::new(), "no agent has asked anything yet"),
        EditError::NoSuchQuestion { .. } => (Vec::new(), "see 'runner questions' for the numbers"),
    };
    ("edit", details, vec![hint.to_owned()])
}

fn told<T: ToString>(faults: &[T]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
