//! A run's identity: the id in GOAL.md, the id in run_state.json and the branch must agree.

use thiserror::Error;

use crate::model::goal::Goal;
use crate::model::id::RunId;
use crate::model::slug::slug;

/// Branches that the runner never works on.
const PROTECTED_BRANCHES: [&str; 2] = ["main", "master"];

/// The facts that must agree.
#[derive(Clone, Copy, Debug)]
pub struct IdentityInputs<'a> {
    /// The current branch; none if HEAD is detached.
    pub branch: Option<&'a str>,
    pub has_gitignore: bool,
    /// The id in run_state.json.
    pub state_id: Option<&'a RunId>,
    /// The id in GOAL.md.
    pub goal_id: Option<&'a RunId>,
}

/// Why no iteration may start. `runner start` fixes each of them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    #[error("the current branch is `{0}`: the runner only works on its own branches (run 'runner start')")]
    ProtectedBranch(String),
    /// Logs would be committed.
    #[error("`.runner/.gitignore` is missing (run 'runner start')")]
    NoGitignore,
    #[error("no run has been started: run_state.json has no run id (run 'runner start')")]
    NoRun,
    #[error("run_state.json belongs to run `{state}`, but GOAL.md {} (run 'runner start')", named(.goal.as_ref()))]
    OtherGoal { state: RunId, goal: Option<RunId> },
    #[error("run `{run}` is on branch `{}`, but {} (run 'runner start')", .run.branch(), current(.branch.as_deref()))]
    WrongBranch { run: RunId, branch: Option<String> },
}

impl IdentityError {
    /// The run that the files belong to, if its branch is not the current one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::WrongBranch { run, .. } => Some(run),
            Self::ProtectedBranch(_) | Self::NoGitignore | Self::NoRun | Self::OtherGoal { .. } => None,
        }
    }
}

fn named(goal: Option<&RunId>) -> String {
    goal.map_or_else(|| "has no run id".to_owned(), |goal| format!("has the id of run `{goal}`"))
}

fn current(branch: Option<&str>) -> String {
    branch.map_or_else(|| "HEAD is detached".to_owned(), |branch| format!("the current branch is `{branch}`"))
}

impl IdentityInputs<'_> {
    /// Every reason why no iteration may start, in the order in which commands report them.
    pub fn errors(&self) -> Vec<IdentityError> {
        let mut errors = Vec::new();
        if let Some(branch) = self.branch.filter(|branch| PROTECTED_BRANCHES.contains(branch)) {
            errors.push(IdentityError::ProtectedBranch(branch.to_owned()));
        }
        if !self.has_gitignore {
            errors.push(IdentityError::NoGitignore);
        }
        let Some(run) = self.state_id else {
            errors.push(IdentityError::NoRun);
            return errors;
        };
        if self.goal_id != Some(run) {
            errors.push(IdentityError::OtherGoal { state: run.clone(), goal: self.goal_id.cloned() });
        }
        if self.branch.and_then(RunId::of_branch).as_ref() != Some(run) {
            let branch = self.branch.map(str::to_owned);
            errors.push(IdentityError::WrongBranch { run: run.clone(), branch });
        }
        errors
    }

    /// Whether no run has been started: no id anywhere, and not on a run's branch.
    pub fn is_unstarted(&self) -> bool {
        let on_run_branch = self.branch.is_some_and(|branch| RunId::of_branch(branch).is_some());
        self.state_id.is_none() && self.goal_id.is_none() && !on_run_branch
    }
}

/// The default id of a run: from the commit that it starts at, with the first free number.
pub fn generate(head_commit: &str, taken: &[RunId]) -> Option<RunId> {
    let short = head_commit.get(..8)?;
    let numbered =
        (1_u32..).map(|n| if n == 1 { format!("run-{short}") } else { format!("run-{short}-{n}") });
    numbered.filter_map(|id| RunId::new(id).ok()).find(|id| !taken.contains(id))
}

/// The most words of a goal in an id.
const WORDS_MAX: usize = 5;

/// Words with which an id does not end.
const LINKING_WORDS: [&str; 16] =
    ["a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with"];

/// An id from the first words of a goal's title, with the first free number. None if the title has no usable words.
pub fn from_goal(goal: &str, taken: &[RunId]) -> Option<RunId> {
    let title = Goal::parse(goal.as_bytes()).ok()?.summary().title;
    let slug = slug(&title);
    let mut words: Vec<&str> = slug.split('-').take(WORDS_MAX).collect();
    while words.len() > 1 && words.last().is_some_and(|word| LINKING_WORDS.contains(word)) {
        words.pop();
    }
    let slug = words.join("-");
    let numbered = (1_u32..).map(|n| if n == 1 { slug.clone() } else { format!("{slug}-{n}") });
    let mut ids = numbered.map_while(|id| RunId::new(id).ok());
    // Some file systems do not distinguish the case of letters in branch names.
    ids.find(|id| !taken.iter().any(|other| other.as_str().eq_ignore_ascii_case(id.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId::new(text).unwrap()
    }

    #[test]
    fn identity_is_valid_if_all_three_agree() {
        let run = id("x");
        let valid = IdentityInputs {
            branch: Some("runner/x"),
            has_gitignore: true,
            state_id: Some(&run),
            goal_id: Some(&run),
        };
        assert_eq!(valid.errors(), []);
        assert!(!valid.is_unstarted());
    }

    #[test]
    fn errors_are_in_the_order_of_the_contract_and_name_the_fix() {
        let run = id("x");
        let other = id("y");
        let bad = IdentityInputs {
            branch: Some("main"),
            has_gitignore: false,
            state_id: Some(&run),
            goal_id: Some(&other),
        };
        let errors: Vec<String> = bad.errors().iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "the current branch is `main`: the runner only works on its own branches (run 'runner start')",
                "`.runner/.gitignore` is missing (run 'runner start')",
                "run_state.json belongs to run `x`, but GOAL.md has the id of run `y` (run 'runner start')",
                "run `x` is on branch `runner/x`, but the current branch is `main` (run 'runner start')",
            ]
        );
        let detached =
            IdentityInputs { branch: None, has_gitignore: true, state_id: Some(&run), goal_id: None };
        let errors: Vec<String> = detached.errors().iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "run_state.json belongs to run `x`, but GOAL.md has no run id (run 'runner start')",
                "run `x` is on branch `runner/x`, but HEAD is detached (run 'runner start')",
            ]
        );
    }

    #[test]
    fn without_any_id_no_run_has_been_started() {
        let fresh =
            IdentityInputs { branch: Some("master"), has_gitignore: true, state_id: None, goal_id: None };
        assert!(fresh.is_unstarted());
        assert_eq!(fresh.errors().len(), 2);
        let run = id("x");
        assert!(!IdentityInputs { goal_id: Some(&run), ..fresh }.is_unstarted());
        assert!(!IdentityInputs { branch: Some("runner/x"), ..fresh }.is_unstarted());
        assert!(!IdentityInputs { state_id: Some(&run), ..fresh }.is_unstarted());
    }

    #[test]
    fn ids_from_goals_are_words_and_unique() {
        let goal = "# Add OAuth login!\n\nWith Google.\n";
        assert_eq!(from_goal(goal, &[]), Some(id("add-oauth-login")));
        assert_eq!(from_goal("Fix: the \"parser\" (again)", &[]), Some(id("fix-the-parser-again")));
        let taken = [id("Add-OAuth-login"), id("add-oauth-login-2")];
        assert_eq!(from_goal(goal, &taken), Some(id("add-oauth-login-3")));
        let long = "Add login with Google and GitHub, and keep the form";
        assert_eq!(from_goal(long, &[]), Some(id("add-login-with-google")));
        assert_eq!(from_goal("Add a parser and a printer", &[]), Some(id("add-a-parser")));
        assert_eq!(from_goal("To the", &[]), Some(id("to")));
        let taken = [id("fuge-einen-login-hinzu")];
        assert_eq!(from_goal("Füge einen Login hinzu", &taken), Some(id("fuge-einen-login-hinzu-2")));
        assert_eq!(from_goal("日本語", &[]), None);
        assert_eq!(from_goal("---\nid: x", &[]), None);
    }

    #[test]
    fn generated_ids_use_the_first_free_number() {
        let head = "0123456789abcdef";
        assert_eq!(generate(head, &[]), Some(id("run-01234567")));
        assert_eq!(generate(head, &[id("run-01234567")]), Some(id("run-01234567-2")));
        let taken = [id("run-01234567"), id("run-01234567-2"), id("run-01234567-3")];
        assert_eq!(generate(head, &taken), Some(id("run-01234567-4")));
        assert_eq!(generate("abc", &[]), None);
    }
}
