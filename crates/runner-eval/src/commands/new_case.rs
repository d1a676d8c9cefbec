//! `runner eval new`

use std::ffi::OsString;
use std::fs;
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

    /// Writes the history up to a commit, with the commit as `main`. A clone keeps the user's repository as it is.
    fn write_bundle(&self, commit: &str, file: &Path) -> Result<(), CommandError> {
        let id = self.git(&["rev-parse", &format!("{commit}^{{commit}}")])?;
        let clone = files::absolute(&self.scratch.join("clone"));
        let clone_text = clone.display().to_string();
        self.git(&["clone", "--bare", "-q", "--no-hardlinks", ".", &clone_text])?;
        let inside = SourceCommit { repo: &clone, ..*self };
        inside.git(&["update-ref", "refs/heads/main", id.trim()])?;
        inside.git(&["symbolic-ref", "HEAD", "refs/heads/main"])?;
        inside
            .git(&["bundle", "create", "-q", &file.display().to_string(), "HEAD", "refs/heads/main"])
            .map(|_| ())
    }

    fn write_case(&self, folder: &Path, args: &NewCaseArgs) -> Result<NewCaseOutput, CommandError> {
        let io = |error| CommandError::io("could not write the case", folder, &error);
        let parent = format!("{}^", self.commit);
        self.git(&["rev-parse", "--verify", "-q", &format!("{parent}^{{commit}}")])?;
        fs::create_dir_all(folder).map_err(io)?;
        self.write_bundle(&parent, &files::absolute(&folder.join("base.bundle")))?;
        let mut changed = 0;
        let mut hidden = 0;
        let mut actions = String::new();
        let list = self.git(&["diff", "--name-status", "--no-renames", &parent, self.commit])?;
        for line in list.lines() {
            let Some((status, path)) = line.split_once('\t') else { continue };
            changed += 1;
            if status == "D" {
                actions.push_str(&format!("[[session.do]]\ndelete = {{ path = {} }}\n", text(path)));
                continue;
            }
            let content = self.git(&["show", &format!("{}:{path}", self.commit)])?;
            if is_test(path) {
                hidden += 1;
                let target = folder.join("hidden").join(path);
                fs::create_dir_all(target.parent().unwrap_or(folder)).map_err(io)?;
                fs::write(&target, content).map_err(io)?;
            } else {
                let write = format!("write = {{ path = {}, text = {} }}", text(path), text(&content));
                actions.push_str(&format!("[[session.do]]\n{write}\n"));
            }
        }
        let solution =
            format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{actions}");
        fs::write(folder.join("solution.toml"), solution).map_err(io)?;
        let file = folder.join("case.toml");
        let goal = self.git(&["log", "-1", "--format=%B", self.commit])?;
        fs::write(&file, case_text(args, goal.trim(), hidden > 0)).map_err(io)?;
        Ok(NewCaseOutput { id: args.id.clone(), file, hidden, changed })
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
