//! What to type when a run cannot begin, be configured or be landed.

use runner_core::config::SetKeyError;
use runner_core::detect::command_line;
use runner_core::layout::Doc;
use runner_host::ops::land::LandError;
use runner_host::ops::preflight::PreflightProblem;
use runner_host::ops::pull_request::PullRequestError;

use super::ErrorAdvice;

pub(super) fn preflight_advice(problems: &[PreflightProblem]) -> ErrorAdvice {
    let details = match problems {
        [_] => Vec::new(),
        problems => problems.iter().map(|problem| format!("{}: {}", problem.check, problem.found)).collect(),
    };
    let hints = problems.iter().map(|problem| problem.fix.clone()).collect();
    ErrorAdvice { code: "preflight", details, hints }
}

pub(super) fn land_advice(error: &LandError) -> ErrorAdvice {
    match error {
        LandError::NothingPassed(_) => {
            ErrorAdvice::new("nothing_to_land", "see its progress with 'runner status'")
        }
        LandError::AlreadyLanded { run, branch } => {
            let mut advice = ErrorAdvice::new("already_landed", format!("see it: git log -p {branch}"));
            advice.hints.push("to land it again: runner land --branch NAME".to_owned());
            advice.hints.push(format!("to remove the run: runner clean {run}"));
            advice
        }
        LandError::UncheckedCommits { commits, .. } => {
            ErrorAdvice::new("unchecked_commits", "let the runner check them: 'runner loop' ('runner start' without a final check), then land again")
                .with_details(commits.clone())
        }
        LandError::Unverified { run, findings } => {
            ErrorAdvice::new("unverified", format!("list every violation with 'runner verify {run}'"))
                .with_details(findings.clone())
        }
        LandError::NoBase(_) => {
            ErrorAdvice::new("no_base", "name the branch to land on: runner land --onto BRANCH")
        }
        LandError::Conflict { run, branch, paths } => {
            let merge =
                format!("resolve it on the run's branch: git switch runner/{run} && git merge {branch}");
            let mut advice = ErrorAdvice::new("conflict", merge).with_details(paths.clone());
            advice.hints.push(
                "then let the runner check the result and land it: runner loop && runner land".to_owned(),
            );
            advice
        }
        LandError::BranchExists(branch) => {
            let hint =
                format!("choose another name with --branch NAME, or remove it: git branch -D {branch}");
            ErrorAdvice::new("branch_exists", hint)
        }
        LandError::BadBranchName(_) => {
            ErrorAdvice::new("branch_name", "choose another name with --branch NAME")
        }
        LandError::NoSuchBranch(_) => {
            ErrorAdvice::new("no_such_branch", "list the branches with 'git branch'")
        }
        LandError::CheckedOut { branch, .. } => ErrorAdvice::new(
            "checked_out",
            format!("land on a new branch: runner land --onto {branch}, then merge it there"),
        ),
        LandError::RedGuard { output, .. } => ErrorAdvice::new(
            "red_guard",
            "the base branch may break the run's work: fix it on the run's branch",
        )
        .with_details(output.clone()),
    }
}

pub(super) fn pull_request_advice(error: &PullRequestError) -> ErrorAdvice {
    match error {
        PullRequestError::NoRemote => ErrorAdvice::new("no_remote", "add one: git remote add origin URL"),
        PullRequestError::NoProgram(program) => {
            let hint = format!("install {program} and log in, or land without --open");
            ErrorAdvice::new("no_review_program", hint)
        }
        PullRequestError::Failed { output, .. } => {
            ErrorAdvice { code: "pull_request", details: output.clone(), hints: Vec::new() }
        }
    }
}

pub(super) fn set_key_advice(error: &SetKeyError) -> ErrorAdvice {
    let config = Doc::Config.path();
    match error {
        SetKeyError::UnknownKey { nearest: Some(nearest), .. } => {
            ErrorAdvice::new("unknown_key", format!("did you mean `{nearest}`?"))
        }
        SetKeyError::UnknownKey { nearest: None, .. } => {
            ErrorAdvice::new("unknown_key", "list all keys with 'runner config show'")
        }
        SetKeyError::Table(_) | SetKeyError::Layout(_) => {
            ErrorAdvice::new("not_settable", format!("edit {config}, then run 'runner start'"))
        }
        SetKeyError::WordCount { .. } => {
            ErrorAdvice::new("value", "for an example: runner config set --help")
        }
        SetKeyError::Invalid(problems) => {
            let hint = "nothing was changed; see what is allowed with 'runner config show KEY'";
            let together = "keys that belong together are set together, and an empty value removes one: \
                            runner config set KEY=VALUE KEY=";
            let mut advice = ErrorAdvice::new("config", hint);
            advice.hints.push(together.to_owned());
            advice.with_details(problems.iter().map(ToString::to_string).collect())
        }
    }
}

/// How to reach another goal than that of a complete run.
pub(super) fn run_complete_advice(goal: &str, base: Option<&str>) -> ErrorAdvice {
    let run = match goal.trim() {
        long if long.contains('\n') => "runner run \"GOAL\"".to_owned(),
        line => command_line(&["runner", "run", line].map(str::to_owned)),
    };
    let new = match base {
        Some(base) => format!("git switch {base} && {run}"),
        None => run,
    };
    let mut advice = ErrorAdvice::new("run_complete", format!("to start a new run with it: {new}"));
    advice.hints.push("to merge the work of this one first: runner land".to_owned());
    advice
}
