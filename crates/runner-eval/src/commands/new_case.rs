//! `runner eval new`

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value as JsonValue, json};
use supervise::executables;
use toml::Value;

use crate::args::{EvalGlobalArgs, NewCaseArgs};
use crate::case::inline;
use crate::case::suite::LoadedCase;
use crate::execution::process::{CommandRunner, CommandSpec};
use crate::files;
use crate::plan::run_name::check_name;

pub(crate) struct NewCaseOutput {
    id: String,
    file: PathBuf,
    hidden: usize,
    changed: usize,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &NewCaseArgs) -> Result<NewCaseOutput, CommandError> {
    let what = || format!("could not create the case `{}`", args.id);
    check_name(&args.id)
        .map_err(|error| CommandError::refused("case_id", format!("`{}` {error}", args.id)))?;
    let folder = global.cases().join(&args.id);
    if folder.exists() {
        return Err(
            CommandError::refused("case_exists", what()).cause(format!("`{}` exists", folder.display()))
        );
    }
    let repo = args
        .repo
        .as_ref()
        .map_or_else(|| global.shared.project_dir.clone(), |repo| global.shared.project_dir.join(repo));
    let scratch = global.workspaces().join(format!(".new-{}", std::process::id()));
    let commands =
        CommandRunner::new(scratch.clone()).map_err(|error| CommandError::from_host(&what(), error))?;
    let source = SourceCommit { scratch: &scratch, repo: &repo, commit: &args.commit, commands: &commands };
    let created = source.write_case(&folder, args);
    let _ = files::remove_any(&scratch);
    if created.is_err() {
        let _ = files::remove_any(&folder);
    }
    let output = created?;
    LoadedCase::load(&output.file)?;
    Ok(output)
}

/// A commit of the user's repository.
#[derive(Clone, Copy)]
struct SourceCommit<'a> {
    scratch: &'a Path,
    repo: &'a Path,
    commit: &'a str,
    commands: &'a CommandRunner,
}

impl SourceCommit<'_> {
    fn git(&self, arguments: &[&str]) -> Result<String, CommandError> {
        let what = "could not read the commit";
        let git = executables::find("git", None)
            .ok_or_else(|| CommandError::refused("no_git", what).cause("git is not on the PATH"))?;
        let mut argv: Vec<OsString> = vec![git.into_os_string()];
        argv.extend(arguments.iter().map(OsString::from));
        let spec = CommandSpec { folder: self.repo.to_owned(), ..CommandSpec::new(argv) };
        let result = self.commands.run(&spec).map_err(|error| CommandError::from_host(what, error))?;
        if result.is_success() {
            return Ok(result.stdout);
        }
        Err(CommandError::new("git", CommandExit::FAILURE, what).cause(result.tail()))
    }

    /// A bare clone, which keeps the user's repository as it is.
    fn clone_repository(&self) -> Result<PathBuf, CommandError> {
        let clone = files::absolute(&self.scratch.join("clone"));
        self.git(&["clone", "--bare", "-q", "--no-hardlinks", ".", &clone.display().to_string()])?;
        Ok(clone)
    }

    /// Writes the history up to the commit's parent, with the parent as `main`.
    fn write_bundle(&self, parent: &str, file: &Path) -> Result<(), CommandError> {
        self.git(&["update-ref", "refs/heads/main", parent])?;
        self.git(&["symbolic-ref", "HEAD", "refs/heads/main"])?;
        self.git(&["bundle", "create", "-q", &file.display().to_string(), "HEAD", "refs/heads/main"])
            .map(|_| ())
    }

    /// Writes the files of the commit into a folder.
    fn check_out(&self) -> Result<PathBuf, CommandError> {
        let folder = files::absolute(&self.scratch.join("files"));
        fs::create_dir_all(&folder).map_err(|error| write_error(&folder, &error))?;
        let (bare, tree) =
            (format!("--git-dir={}", self.repo.display()), format!("--work-tree={}", folder.display()));
        self.git(&[
            &bare,
            &tree,
            "-c",
            "core.autocrlf=false",
            "checkout",
            "-q",
            "-f",
            self.commit,
            "--",
            ".",
        ])?;
        Ok(folder)
    }

    /// What the commit changed, without renames.
    fn changes(&self, parent: &str) -> Result<Vec<CommitChange>, CommandError> {
        let list = self.git(&["diff", "-z", "--name-status", "--no-renames", parent, self.commit])?;
        let mut changes = Vec::new();
        let mut fields = list.split('\0');
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            if path.contains(char::REPLACEMENT_CHARACTER) {
                let what = format!("the name of the file `{path}` is not UTF-8");
                return Err(CommandError::new("git", CommandExit::FAILURE, what));
            }
            changes.push(CommitChange { path: path.to_owned(), is_deleted: status == "D" });
        }
        Ok(changes)
    }

    /// A patch of files that a scenario cannot contain as text. It is text itself: every file counts as binary.
    fn binary_patch(&self, parent: &str, paths: &[String]) -> Result<String, CommandError> {
        let attributes = self.repo.join("info/attributes");
        let _ = fs::create_dir_all(self.repo.join("info"));
        fs::write(&attributes, "* -diff\n").map_err(|error| write_error(&attributes, &error))?;
        let file = files::absolute(&self.scratch.join("patch"));
        let output = format!("--output={}", file.display());
        let mut arguments = vec!["diff", "--binary", "--full-index", "--no-renames", "--no-color", &output];
        arguments.extend([parent, self.commit, "--"]);
        let literal: Vec<String> = paths.iter().map(|path| format!(":(literal){path}")).collect();
        arguments.extend(literal.iter().map(String::as_str));
        self.git(&arguments)?;
        fs::read_to_string(&file).map_err(|error| write_error(&file, &error))
    }

    fn write_case(&self, folder: &Path, args: &NewCaseArgs) -> Result<NewCaseOutput, CommandError> {
        let io = |error| write_error(folder, &error);
        let id = |commit: &str| self.git(&["rev-parse", "--verify", "-q", &format!("{commit}^{{commit}}")]);
        let (commit, parent) = (id(self.commit)?, id(&format!("{}^", self.commit))?);
        let (commit, parent) = (commit.trim(), parent.trim());
        fs::create_dir_all(folder).map_err(io)?;
        let clone = self.clone_repository()?;
        let source = SourceCommit { repo: &clone, commit, ..*self };
        let work_tree = source.check_out()?;
        let changes = source.changes(parent)?;
        let mut hidden = 0;
        let mut solution = SolutionActions::default();
        for CommitChange { path, is_deleted } in &changes {
            if *is_deleted {
                solution.delete(path);
            } else if is_test(path) {
                hidden += 1;
                copy_hidden(&work_tree, path, folder).map_err(io)?;
            } else {
                solution.write(path, &work_tree.join(path)).map_err(io)?;
            }
        }
        if !solution.patched.is_empty() {
            let patch = source.binary_patch(parent, &solution.patched)?;
            solution.apply(&patch);
        }
        fs::write(folder.join("solution.toml"), solution.scenario()).map_err(io)?;
        let file = folder.join("case.toml");
        let goal = source.git(&["log", "-1", "--format=%B", commit])?;
        fs::write(&file, case_text(args, goal.trim(), hidden > 0)).map_err(io)?;
        source.write_bundle(parent, &files::absolute(&folder.join("base.bundle")))?;
        Ok(NewCaseOutput { id: args.id.clone(), file, hidden, changed: changes.len() })
    }
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::io("could not write the case", path, error)
}

struct CommitChange {
    path: String,
    is_deleted: bool,
}

/// Copies a test of the commit to the hidden files of the case, with its mode.
fn copy_hidden(work_tree: &Path, path: &str, folder: &Path) -> io::Result<()> {
    let (source, target) = (work_tree.join(path), folder.join("hidden").join(path));
    fs::create_dir_all(target.parent().unwrap_or(folder))?;
    if source.is_symlink() {
        return symlink(fs::read_link(source)?, target);
    }
    fs::copy(source, target).map(|_| ())
}

/// The file in the repository that a solution applies and removes.
const PATCH_FILE: &str = ".solution.patch";

/// The session that does what a commit did.
#[derive(Default)]
struct SolutionActions {
    text: String,
    /// Files that are neither text nor whole in a scenario: bytes, links, submodules.
    patched: Vec<String>,
}

impl SolutionActions {
    fn push(&mut self, action: &str) {
        self.text.push_str(&format!("[[session.do]]\n{action}\n"));
    }

    fn delete(&mut self, path: &str) {
        self.push(&format!("delete = {{ path = {} }}", text(path)));
    }

    fn write(&mut self, path: &str, source: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(source)?;
        let content = if metadata.is_file() { String::from_utf8(fs::read(source)?).ok() } else { None };
        let Some(content) = content else {
            self.patched.push(path.to_owned());
            return Ok(());
        };
        self.push(&format!("write = {{ path = {}, text = {} }}", text(path), text(&content)));
        let is_executable = metadata.permissions().mode() & 0o111 != 0;
        let mode = if is_executable { "+x" } else { "-x" };
        self.run(&["chmod", mode, "--", path]);
        Ok(())
    }

    fn run(&mut self, argv: &[&str]) {
        let words: Vec<String> = argv.iter().map(|word| text(word)).collect();
        self.push(&format!("run = {{ argv = [{}] }}", words.join(", ")));
    }

    /// Applies a patch, unless an earlier session has.
    fn apply(&mut self, patch: &str) {
        self.push(&format!("write = {{ path = {}, text = {} }}", text(PATCH_FILE), text(patch)));
        let script =
            format!("git apply --reverse --check {PATCH_FILE} 2>/dev/null || git apply {PATCH_FILE}");
        self.run(&["sh", "-c", &script]);
        self.delete(PATCH_FILE);
    }

    fn scenario(&self) -> String {
        format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{}", self.text)
    }
}

/// Whether a changed file is a test, which the agent must not see.
fn is_test(path: &str) -> bool {
    let lower = path.to_lowercase();
    lower.split(['/', '.', '_', '-']).any(|part| matches!(part, "test" | "tests" | "spec" | "specs"))
}

fn text(text: &str) -> String {
    inline(&Value::String(text.to_owned()))
}

fn case_text(args: &NewCaseArgs, goal: &str, has_hidden: bool) -> String {
    let hidden = if has_hidden { "hidden = \"hidden\"\n" } else { "" };
    format!(
        "# Made from commit {}. Edit the goal: it is the commit's message, which may give the solution away.\n\n\
         [case]\nid = {}\ntags = [\"own\"]\nfixture = \"base.bundle\"\n{hidden}solution = \"solution.toml\"\ngoal = {}\n\n\
         [config.guard]\ncommand = [\"true\"]\n\n\
         [[checks]]\nname = \"the commit's check\"\ntype = \"command_succeeds\"\ncommand = [\"sh\", \"-c\", {}]\n\
         timeout_secs = 600\nhidden = true\n",
        args.commit,
        text(&args.id),
        text(goal),
        text(&args.check)
    )
}

impl CommandOutput for NewCaseOutput {
    fn json(&self) -> JsonValue {
        json!({
            "schema": "runner.eval.new/1",
            "case": self.id,
            "file": self.file.display().to_string(),
            "changed": self.changed,
            "hidden": self.hidden,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("case", &self.id).with("file", self.file.display());
        vec![line.with("changed", self.changed).with("hidden", self.hidden)]
    }

    fn human(&self, _: &Styler) -> String {
        format!(
            "{}: {} changed files, {} of them hidden tests\nNext: edit {}, then runner eval lint {}\n",
            self.id,
            self.changed,
            self.hidden,
            self.file.display(),
            self.id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_recognised_by_their_path() {
        for path in ["tests/it/a.rs", "src/login.test.ts", "login_test.go", "spec/x.rb", "a/test_b.py"] {
            assert!(is_test(path), "{path}");
        }
        for path in ["src/contest.rs", "latest.txt", "src/attest/x.py"] {
            assert!(!is_test(path), "{path}");
        }
    }
}
