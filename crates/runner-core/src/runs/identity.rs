//! A run's identity: the id in GOAL.md, the id in run_state.json and the branch must agree.

use thiserror::Error;

use crate::model::id::RunId;

/// Branches that the runner never works on.
const PROTECTED_BRANCHES: [&str; 2] = ["main", "master"];

/// What identity is read from.
#[derive(Clone, Copy, Debug)]
pub struct IdentityInputs<'a> {
    /// The current branch; none where HEAD is detached.
    pub branch: Option<&'a str>,
    /// Whether `.runner/.gitignore` is there.
    pub has_gitignore: bool,
    /// The id in run_state.json.
    pub state_id: Option<&'a RunId>,
    /// The id in GOAL.md.
    pub goal_id: Option<&'a RunId>,
}

/// Why no iteration may begin. Every one is mended by `runner start`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    /// On a branch that belongs to people.
    #[error("the current branch is `{0}`: the runner works on branches of its own (run 'runner start')")]
    ProtectedBranch(String),
    /// Logs would be committed.
    #[error("`.runner/.gitignore` is missing (run 'runner start')")]
    NoGitignore,
    /// Nothing was started.
    #[error("no run has been started: run_state.json holds no run id (run 'runner start')")]
    NoRun,
    /// The goal names another run.
    #[error("run_state.json belongs to run `{state}`, GOAL.md {} (run 'runner start')", named(.goal.as_ref()))]
    OtherGoal {
        /// The id in run_state.json.
        state: RunId,
        /// The id in GOAL.md.
        goal: Option<RunId>,
    },
    /// Not on the run's branch.
    #[error("run `{run}` lives on branch `{}`, {} (run 'runner start')", .run.branch(), current(.branch.as_deref()))]
    WrongBranch {
        /// The run.
        run: RunId,
        /// The current branch.
        branch: Option<String>,
    },
}

fn named(goal: Option<&RunId>) -> String {
    goal.map_or_else(|| "names no run".to_owned(), |goal| format!("names run `{goal}`"))
}

fn current(branch: Option<&str>) -> String {
    branch.map_or_else(|| "HEAD is detached".to_owned(), |branch| format!("the current branch is `{branch}`"))
}

impl IdentityInputs<'_> {
    /// Everything that keeps an iteration from beginning, in the order in which it is refused.
    pub fn faults(&self) -> Vec<IdentityError> {
        let mut faults = Vec::new();
        if let Some(branch) = self.branch.filter(|branch| PROTECTED_BRANCHES.contains(branch)) {
            faults.push(IdentityError::ProtectedBranch(branch.to_owned()));
        }
        if !self.has_gitignore {
            faults.push(IdentityError::NoGitignore);
        }
        let Some(run) = self.state_id else {
            faults.push(IdentityError::NoRun);
            return faults;
        };
        if self.goal_id != Some(run) {
            faults.push(IdentityError::OtherGoal { state: run.clone(), goal: self.goal_id.cloned() });
        }
        if self.branch.and_then(RunId::of_branch).as_ref() != Some(run) {
            let branch = self.branch.map(str::to_owned);
            faults.push(IdentityError::WrongBranch { run: run.clone(), branch });
        }
        faults
    }

    /// Whether nothing claims that there is a run: no id anywhere, and no run's branch.
    pub fn is_unstarted(&self) -> bool {
        let on_run_branch = self.branch.is_some_and(|branch| RunId::of_branch(branch).is_some());
        self.state_id.is_none() && self.goal_id.is_none() && !on_run_branch
    }
}

/// The id for a run whose goal names none: from the commit it starts at, with the first free number.
pub fn generate(head_commit: &str, taken: &[RunId]) -> Option<RunId> {
    let short = head_commit.get(..8)?;
    let numbered =
        (1_u32..).map(|n| if n == 1 { format!("run-{short}") } else { format!("run-{short}-{n}") });
    numbered.filter_map(|id| RunId::new(id).ok()).find(|id| !taken.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId::new(text).unwrap()
    }

    #[test]
    fn a_run_stands_when_all_three_agree() {
        let run = id("x");
        let good = IdentityInputs {
            branch: Some("runner/x"),
            has_gitignore: true,
            state_id: Some(&run),
            goal_id: Some(&run),
        };
        assert_eq!(good.faults(), []);
        assert!(!good.is_unstarted());
    }

    #[test]
    fn faults_come_in_the_order_of_the_contract_and_name_the_cure() {
        let (run, other) = (id("x"), id("y"));
        let bad = IdentityInputs {
            branch: Some("main"),
            has_gitignore: false,
            state_id: Some(&run),
            goal_id: Some(&other),
        };
        let told: Vec<String> = bad.faults().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "the current branch is `main`: the runner works on branches of its own (run 'runner start')",
                "`.runner/.gitignore` is missing (run 'runner start')",
                "run_state.json belongs to run `x`, GOAL.md names run `y` (run 'runner start')",
                "run `x` lives on branch `runner/x`, the current branch is `main` (run 'runner start')",
            ]
        );
        let detached =
            IdentityInputs { branch: None, has_gitignore: true, state_id: Some(&run), goal_id: None };
        let told: Vec<String> = detached.faults().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "run_state.json belongs to run `x`, GOAL.md names no run (run 'runner start')",
                "run `x` lives on branch `runner/x`, HEAD is detached (run 'runner start')",
            ]
        );
    }

    #[test]
    fn before_the_first_start_nothing_claims_a_run() {
        let fresh =
            IdentityInputs { branch: Some("master"), has_gitignore: true, state_id: None, goal_id: None };
        assert!(fresh.is_unstarted());
        assert_eq!(fresh.faults().len(), 2);
        let run = id("x");
        assert!(!IdentityInputs { goal_id: Some(&run), ..fresh }.is_unstarted());
        assert!(!IdentityInputs { branch: Some("runner/x"), ..fresh }.is_unstarted());
        assert!(!IdentityInputs { state_id: Some(&run), ..fresh }.is_unstarted());
    }

    #[test]
    fn a_generated_id_takes_the_first_free_number() {
        let head = "0123456789abcdef";
        assert_eq!(generate(head, &[]), Some(id("run-01234567")));
        assert_eq!(generate(head, &[id("run-01234567")]), Some(id("run-01234567-2")));
        let taken = [id("run-01234567"), id("run-01234567-2"), id("run-01234567-3")];
        assert_eq!(generate(head, &taken), Some(id("run-01234567-4")));
        assert_eq!(generate("abc", &[]), None);
    }
}
