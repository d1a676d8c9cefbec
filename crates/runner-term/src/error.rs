//! User-facing errors: what failed, why, and what to type next, for every error of the host and of the commands.

mod plan_advice;
mod setup_advice;

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use runner_core::detect::command_line;
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::runs::import::InsertError;
use runner_host::Error;
use runner_host::UserError;
use runner_host::ops::pull_request::PullRequestError;
use serde_json::{Value, json};

use self::plan_advice::{edit_error_advice, insert_error_advice, start_error_advice};
use self::setup_advice::{
    land_advice, preflight_advice, pull_request_advice, run_complete_advice, set_key_advice,
};
use crate::output::CommandExit;
use crate::style::{Styler, TextRole};

/// The code of a guard that fails before any agent ran.
pub const RED_BASELINE: &str = "red_baseline";

/// The error that a command ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// A stable identifier for scripts.
    code: &'static str,
    what: String,
    causes: Vec<String>,
    /// Lines that belong to the last cause: paths, problems, another program's output.
    details: Vec<String>,
    hints: Vec<String>,
    exit: CommandExit,
}

/// What an error of the host means to the user: its code, the lines below its cause, and what to type.
struct ErrorAdvice {
    code: &'static str,
    details: Vec<String>,
    hints: Vec<String>,
}

impl ErrorAdvice {
    fn new(code: &'static str, hint: impl Into<String>) -> Self {
        Self { code, details: Vec::new(), hints: vec![hint.into()] }
    }

    fn with_details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

impl CommandError {
    pub fn new(code: &'static str, exit: CommandExit, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), causes: Vec::new(), details: Vec::new(), hints: Vec::new(), exit }
    }

    /// An error in what the user typed or wrote.
    pub fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(code, CommandExit::REFUSED, what)
    }

    /// A failed system call on a path.
    pub fn io(what: impl Into<String>, path: &Path, error: &io::Error) -> Self {
        let mut command_error = Self::new(io_code(error), CommandExit::FAILURE, what);
        command_error.hints = io_hints(error);
        command_error.cause(format!("`{}`: {error}", path.display()))
    }

    /// The error of a worker process of ours, as [`CommandError::json`] wrote it.
    pub fn from_json(document: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let list = document.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let what = document.get("message").and_then(Value::as_str).unwrap_or("a worker process failed");
        let error = Self::new("worker", CommandExit::FAILURE, what);
        Self { causes: texts("causes"), details: texts("details"), hints: texts("hints"), ..error }
    }

    /// An error of the host; `what` is the action that failed.
    pub fn from_host(what: &str, error: impl Into<Error>) -> Self {
        let error = error.into();
        let advice = host_error_advice(&error);
        let exit = match &error {
            // An agent broke the repository, not the user's input.
            Error::Refused(UserError::GitFolderGone(_) | UserError::CrashLoop { .. }) => CommandExit::FAILURE,
            // A program or a server failed.
            Error::Refused(UserError::PullRequest(PullRequestError::Failed { .. })) => CommandExit::FAILURE,
            Error::Refused(_) => CommandExit::REFUSED,
            Error::Locked { .. }
            | Error::Io { .. }
            | Error::Git { .. }
            | Error::GitOutput { .. }
            | Error::Journal { .. }
            | Error::LowDisk { .. }
            | Error::Internal(_) => CommandExit::FAILURE,
        };
        let mut causes = vec![error.to_string()];
        causes.extend(
            std::iter::successors(error.source(), |cause: &&dyn StdError| (*cause).source())
                .map(ToString::to_string),
        );
        causes.dedup();
        let ErrorAdvice { code, details, hints } = advice;
        Self { code, what: what.to_owned(), causes, details, hints, exit }
    }

    /// A plan that cannot be inserted into the tree.
    pub fn from_insert_error(what: &str, error: &InsertError) -> Self {
        let ErrorAdvice { code, details, hints } = insert_error_advice(error);
        let command_error = Self::refused(code, what).cause(error.to_string()).details(details);
        Self { hints, ..command_error }
    }

    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds lines that belong to the last cause.
    pub fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// Adds what the user can type or change.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Replaces what the user can type or change.
    pub fn with_hints<T: Into<String>>(self, hints: impl IntoIterator<Item = T>) -> Self {
        Self { hints: hints.into_iter().map(Into::into).collect(), ..self }
    }

    /// The stable identifier for scripts.
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn exit(&self) -> CommandExit {
        self.exit
    }

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

    pub fn render(&self, styler: &Styler) -> String {
        let line = |role: TextRole, label: &str, body: &str| {
            let body = styler.wrap_commands(body, label.len() + 1);
            format!("{} {body}\n", styler.paint(role, label))
        };
        let mut text = line(TextRole::Bad, "error:", &self.what);
        for cause in &self.causes {
            text.push_str(&line(TextRole::Strong, "caused by:", cause));
        }
        for detail in &self.details {
            text.push_str(&format!("  {detail}\n"));
        }
        for hint in &self.hints {
            text.push_str(&line(TextRole::Active, "hint:", hint));
        }
        text
    }
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

/// What to type if git's objects cannot be written.
const OPEN_OBJECTS: &str = "make git's objects writable: chmod -R u+w .git/objects";

/// What to type where git's own words have no advice. Git speaks English here, whatever the user's language.
fn git_hints(stderr: &str) -> Vec<String> {
    let is_closed = stderr.contains("insufficient permission for adding an object");
    is_closed.then(|| OPEN_OBJECTS.to_owned()).into_iter().collect()
}

fn path_hints(path: &Path, error: &io::Error) -> Vec<String> {
    let is_closed = error.kind() == io::ErrorKind::PermissionDenied;
    let is_object = path.ancestors().any(|folder| folder.ends_with(".git/objects"));
    if is_closed && is_object { vec![OPEN_OBJECTS.to_owned()] } else { io_hints(error) }
}

fn io_hints(error: &io::Error) -> Vec<String> {
    let hint = if is_full(error) {
        "free some disk space, then run the same command again (no work was lost)"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "check the owner and the permissions of the file"
    } else {
        return Vec::new();
    };
    vec![hint.to_owned()]
}

fn host_error_advice(error: &Error) -> ErrorAdvice {
    match error {
        Error::Refused(user_error) => user_error_advice(user_error),
        Error::Locked { holder } => {
            let process =
                holder.strip_prefix("pid ").map_or("that process".to_owned(), |pid| format!("process {pid}"));
            let mut advice =
                ErrorAdvice::new("locked", "watch it with 'runner watch', or stop it with 'runner stop'");
            advice.hints.push("to edit the plan, pause it first: 'runner pause --wait'".to_owned());
            advice
                .hints
                .push(format!("or wait for it to finish (the lock is released when {process} exits)"));
            advice.details = if holder.is_empty() { Vec::new() } else { vec![holder.clone()] };
            advice
        }
        Error::Io { source, path, .. } => {
            ErrorAdvice { code: io_code(source), details: Vec::new(), hints: path_hints(path, source) }
        }
        Error::Git { stderr, .. } => {
            ErrorAdvice { code: "git", details: lines(stderr), hints: git_hints(stderr) }
        }
        Error::GitOutput { .. } => ErrorAdvice::new("git", "run 'runner doctor' to check git's version"),
        Error::Journal { path } => {
            let hint = "finish it with the version of runner that started it";
            ErrorAdvice::new("journal", hint).with_details(vec![path.display().to_string()])
        }
        Error::LowDisk { needed, .. } => ErrorAdvice::new(
            "low_disk",
            format!("free some space (an iteration needs {needed}), then run it again"),
        ),
        Error::Internal(_) => ErrorAdvice { code: "internal", details: Vec::new(), hints: Vec::new() },
    }
}

#[expect(clippy::too_many_lines, reason = "a flat table with one arm per error")]
fn user_error_advice(error: &UserError) -> ErrorAdvice {
    let advice = |code, hint: &str| ErrorAdvice::new(code, hint);
    match error {
        UserError::NoGit => advice("no_git", "install git 2.36 or newer"),
        UserError::OldGit { .. } => advice("old_git", "install git 2.36 or newer"),
        UserError::NoRepository { stderr, .. } => advice(
            "no_repository",
            "change to a repository, or create one: git init && git commit --allow-empty -m root",
        )
        .with_details(lines(stderr)),
        UserError::Bare(_) => advice("bare", "work in a clone of it: git clone REPOSITORY"),
        UserError::LineBreak => advice("line_break", "move the repository to a path without line breaks"),
        UserError::InsideGitFolder { root, .. } => {
            let root = root.as_ref().map_or("..".to_owned(), |root| root.display().to_string());
            ErrorAdvice::new("inside_git_folder", format!("change to the work tree: cd {root}"))
        }
        UserError::NoCommit => {
            advice("no_commit", "create a commit: git add -A && git commit --allow-empty -m root")
        }
        UserError::DetachedHead(_) => advice("detached_head", "create a branch here: git switch -c NAME"),
        UserError::NoGuard => advice("no_guard", "name your test command: --guard \"COMMAND\""),
        UserError::ReadOnly(path) => ErrorAdvice::new(
            "read_only",
            format!("allow it: chmod u+w {0}, or take the files over: sudo chown -R \"$USER\" {0}", path.display()),
        ),
        UserError::Busy(operation) => {
            ErrorAdvice::new("busy", format!("finish it, or abort it with '{}'", operation.abort()))
        }
        UserError::IndexLocked(lock) => advice(
            "index_locked",
            "wait for the other git command; if none is running, remove this file",
        )
        .with_details(vec![lock.display().to_string()]),
        UserError::Dirty { paths, more } => {
            let rest = (*more > 0).then(|| format!("and {more} more"));
            let hint = "commit them, or stash them with 'git stash -u', then run it again";
            advice("dirty", hint).with_details(paths.iter().cloned().chain(rest).collect())
        }
        UserError::HiddenChanges { paths, more } => {
            let rest = (*more > 0).then(|| format!("and {more} more"));
            let hint = "clear these flags, and commit or undo the changes, then run 'runner start'";
            advice("hidden_changes", hint).with_details(paths.iter().cloned().chain(rest).collect())
        }
        UserError::HeldElsewhere { worktree, .. } => {
            ErrorAdvice::new("held_elsewhere", format!("run it there: runner -C {worktree} start"))
                .with_details(vec![worktree.clone()])
        }
        UserError::BranchInTheWay { existing, .. } => ErrorAdvice::new(
            "branch_in_the_way",
            format!("rename that branch: git branch -m {existing} another-name"),
        ),
        UserError::BranchBlocked { stderr, .. } => {
            advice("branch_blocked", "remove what blocks it, or choose another `id` in .runner/GOAL.md")
                .with_details(lines(stderr))
        }
        UserError::BranchMoved(_) => advice(
            "branch_moved",
            "run the command again: the run goes on from the branch's new commit, and the iteration is kept under refs/runner/",
        ),
        UserError::WorktreeDetached { git_dir, .. } => ErrorAdvice::new(
            "worktree_detached",
            format!(
                "unset core.worktree, or add a `.git` file to the work tree with this line: gitdir: {}",
                git_dir.display()
            ),
        ),
        UserError::SwitchBlocked { stderr, .. } => {
            advice("switch_blocked", "move those files away, then run 'runner start'")
                .with_details(lines(stderr))
        }
        UserError::Filter(name) => ErrorAdvice::new(
            "filter",
            format!("if you trust it, add \"{name}\" to `filters` under [git] in {}", Doc::Config.path()),
        ),
        UserError::NotAFile { .. } | UserError::NotAFolder { .. } => {
            advice("not_a_file", "replace it with a regular file or directory (symbolic links are not followed)")
        }
        UserError::Tools { faults } => {
            advice("tools", "fix or remove those files, then run 'runner start'").with_details(faults.clone())
        }
        UserError::Checks { faults } => {
            advice("checks", "fix or remove those checks, then try again").with_details(faults.clone())
        }
        UserError::NoRoom { why, fix } => ErrorAdvice::new(
            "no_room",
            format!("{fix}, or set room = \"auto\" under [guard] in {}", Doc::Config.path()),
        )
        .with_details(vec![why.clone()]),
        UserError::RoomSetup { .. } => {
            advice("room_setup", "make the path in the message readable, or remove it, then try again")
        }
        UserError::Heldout { fix, .. } => ErrorAdvice::new("heldout", (*fix).to_owned()),
        UserError::HeldoutChanged { .. } => {
            advice("heldout_changed", "restore them, or accept them as they are: runner start")
        }
        UserError::KeepOutside(_) => {
            advice("guard_keep", "fix `keep` under [guard] in the configuration, then run 'runner start'")
        }
        UserError::KeptUnknown(path) => ErrorAdvice::new(
            "guard_keep_unknown",
            format!("check that `{path}` is yours, then copy it as it is now: runner start"),
        ),
        UserError::NoSandbox { why, fix } => ErrorAdvice::new(
            "no_sandbox",
            format!(
                "{fix}, or set sandbox = \"auto\" under [executor] in {} and remove the network and folder limits \
                 from every tools.json",
                Doc::Config.path()
            ),
        )
        .with_details(vec![why.clone()]),
        UserError::TooLarge { .. } => advice("too_large", "make it smaller, or restore it from git"),
        UserError::CrashLoop { iter, .. } => ErrorAdvice::new(
            "crash_loop",
            format!("look at the session with 'runner log {iter}'; to go on, run 'runner loop' again"),
        ),
        UserError::GitFolderGone(_) => {
            advice("git_folder_gone", "find out what happened to it before you run anything else")
        }
        UserError::Identity { error, newest, worktree } => {
            identity_advice(error.run().or(newest.as_ref()), worktree.as_deref())
        }
        UserError::RunnerChanged { paths, .. } => {
            advice("runner_changed", "commit the changes with 'runner start', or undo them with git")
                .with_details(paths.clone())
        }
        UserError::UnstartedChange { paths, .. } => {
            advice("unstarted_change", "run 'runner start' to put the changes into effect, or revert the commits")
                .with_details(paths.clone())
        }
        UserError::CannotSign { .. } => advice(
            "cannot_sign",
            "name a key with --key, load it into the agent (ssh-add), or write the statements unsigned",
        ),
        UserError::Prompt(_) => {
            advice("prompt", "fix the template or raise prompt_budget_bytes, then run 'runner start'")
        }
        UserError::NotSetUp(_) => advice("not_set_up", "run 'runner init', or start at once with 'runner run \"GOAL\"'"),
        UserError::MissingDoc(_) => advice("missing", "run 'runner start' to create missing files"),
        UserError::Start(error) => start_error_advice(error),
        UserError::Edit(error) => edit_error_advice(error),
        UserError::NoSuchRun { wanted, runs } => ErrorAdvice::new("no_such_run", run_hint(wanted, runs)),
        UserError::RunExists(run) => ErrorAdvice::new(
            "run_exists",
            format!("choose another id with --id, or switch to that run: git switch {}", run.branch()),
        ),
        UserError::NoForkName(_) => advice("no_fork_name", "choose an id with --id"),
        UserError::NoSuchRevision(_) => {
            advice("no_such_revision", "name a commit as in git: a branch, a tag, HEAD~3 or a commit id")
        }
        UserError::NotARun(_) => advice(
            "not_a_run",
            "name a run, a commit on its branch, or a range: runner verify runner/<id>",
        ),
        UserError::NoRuns => {
            advice("no_runs", "start one with 'runner start', or fetch its branch: git fetch origin")
        }
        UserError::WhichRun { runs } => {
            advice("which_run", "name one with --run RUN, or check out its branch").with_details(runs.clone())
        }
        UserError::MissingObject(_) => {
            advice("missing_object", "fetch all objects: git fetch --refetch --no-filter origin")
        }
        UserError::Preflight(problems) => preflight_advice(problems),
        UserError::SetKey(error) => set_key_advice(error),
        UserError::Land(error) => land_advice(error),
        UserError::PullRequest(error) => pull_request_advice(error),
        UserError::RunComplete { goal, base } => run_complete_advice(goal, base.as_deref()),
        UserError::OnRunBranch { base, .. } => {
            let base = base.as_deref().unwrap_or("YOUR-BRANCH");
            let mut advice = ErrorAdvice::new("on_run_branch", "to continue that run: runner loop");
            advice.hints.push(format!("to start a new one: git switch {base}, then the same command again"));
            advice
        }
        UserError::RunCheckedOut { worktree, is_linked: true, .. } => {
            let remove = command_line(&["git", "worktree", "remove", worktree].map(str::to_owned));
            ErrorAdvice::new("run_checked_out", format!("remove its work tree first: {remove}"))
        }
        UserError::RunCheckedOut { .. } => {
            advice("run_checked_out", "check out another branch there first, for example: git switch main")
        }
        UserError::RunNotLanded(run) => {
            let mut advice = ErrorAdvice::new("not_landed", format!("land it first: runner land {run}"));
            advice.hints.push(format!("or remove it with its work: runner clean {run} --force"));
            advice
        }
        UserError::LoopRunning(_) => {
            let mut advice = advice("loop_running", "to stop it: runner stop");
            advice.hints.push("to see what it does: runner watch".to_owned());
            advice
        }
        UserError::NothingRuns => advice("nothing_runs", "see the run's status with 'runner status'"),
        UserError::BadRunId { .. } => advice("bad_run_id", "use letters, digits, `-`, `_` and `.`"),
        UserError::PathTaken(_) => advice("path_taken", "choose a folder that does not exist yet"),
        UserError::RedBaseline { output, .. } => {
            let mut advice = advice(RED_BASELINE, "fix it first; no task can pass until it succeeds");
            advice.hints.push("or let the agent fix it: runner loop --allow-red".to_owned());
            advice.with_details(output.clone())
        }
        UserError::RunInProgress(_) => advice(
            "run_under_way",
            "to start another run, remove `id` from .runner/GOAL.md and run 'runner start'",
        ),
    }
}

/// `runner start` fixes every error of identity. If there is a run, the user more likely wants to go on with it.
fn identity_advice(run: Option<&RunId>, worktree: Option<&Path>) -> ErrorAdvice {
    let command = |run: &RunId| match worktree {
        Some(worktree) => {
            command_line(&["runner", "-C", &worktree.to_string_lossy(), "loop"].map(str::to_owned))
        }
        None => format!("runner switch {run}"),
    };
    let hints = run.map(|run| format!("to continue run `{run}`: {}", command(run)));
    ErrorAdvice { code: "identity", details: Vec::new(), hints: hints.into_iter().collect() }
}

fn run_hint(wanted: &str, runs: &[String]) -> String {
    let known: Vec<&str> = runs.iter().map(String::as_str).collect();
    match runner_core::strict::nearest(wanted, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if runs.is_empty() => {
            "this repository has no runs: fetch the run's branch, or start one with 'runner start'".to_owned()
        }
        None => format!("runs in this repository: {}", runs.join(", ")),
    }
}

fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}
