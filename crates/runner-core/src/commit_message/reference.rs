//! The generated page about commit messages: docs/reference/commits.md.

use super::Trailer;

/// The subjects with their placeholders, and the commits that have them.
pub(super) const SUBJECTS: [(&str, &str); 9] = [
    (
        "chore(loop): start run <run-id>",
        "`runner start`, also by `runner node check add` and `remove`; or `runner fork` if it has the trailer `Runner-Fork`",
    ),
    (
        "chore(loop): run <run-id> iter <NNNN> node <node-id> status=<status> guard=<guard>",
        "an iteration: `status` is `done`, `retry` or `decomposed`, `guard` is `pass`, `fail` or `skipped`",
    ),
    (
        "chore(loop): run <run-id> iter <NNNN> repair status=<status> guard=skipped",
        "an iteration that repairs an invalid tree and selects no node",
    ),
    (
        "chore(loop): run <run-id> iter <NNNN> plan status=<status> guard=skipped",
        "a planning session: `runner plan make`",
    ),
    (
        "chore(loop): run <run-id> baseline guard=<guard>",
        "the guard's result before the first session, and after a start that changed the guard",
    ),
    (
        "chore(loop): run <run-id> final guard=<guard>",
        "the results of the guard and of all checks in a clean checkout, after all tasks passed",
    ),
    (
        "chore(loop): run <run-id> milestone checks=<result>",
        "the checks of all passed tasks, which ran again after a task with parts passed",
    ),
    (
        "chore(loop): run <run-id> edit <edit>",
        "an edit: `node add`, `edit`, `split`, `remove`, `move` or `allow` with the node's id, `answer` with the question's \
         number, `note`, or `plan approve`",
    ),
    (
        "chore(loop): save stray files of run <run-id>",
        "files that recovery found in the work tree; on `refs/runner/<run-id>/found/…`, never on the branch",
    ),
];

/// The annotations as their trailer has them, and what they mean.
const ANNOTATIONS: [(&str, &str); 17] = [
    ("guard-file-restored <path>", "the agent changed a protected file; the runner restored it"),
    ("guard-file-changed <path>", "the agent changed a protected file; `protect = \"flag\"` allows it"),
    ("guard-file-created <path>", "the agent created a guard file; it is pinned from this pass on"),
    ("guard-files-omitted <n>", "further guard files that are not listed"),
    (
        "plan-edited added=<n> removed=<n> moved=<n> reordered=<n> reworded=<n>",
        "the agent edited the plan: how many nodes, by kind of edit",
    ),
    (
        "memory-restored <path>",
        "the agent changed earlier text of a memory file, which is append-only; the runner restored it",
    ),
    ("key-redacted <path>", "the agent wrote a key into a document of the run; the runner replaced it"),
    ("key-committed <path>", "a file of the commit contains what looks like a key"),
    ("selected-task-edited", "the agent changed the goal or the acceptance criteria of its own task"),
    ("check-file-restored <path>", "the agent changed checks or a check file; the runner restored it"),
    (
        "check-unproven <name> <kind>",
        "a check that had to fail before the work succeeded (`green`) or gave no result (`broken`)",
    ),
    ("repair-abandoned", "no repair of the tree succeeded; the run continues from the last valid one"),
    ("nothing-changed", "the agent answered and changed nothing"),
    (
        "confirmed-unchanged",
        "the task passed without a change to any file: two independent sessions answered `done`",
    ),
    ("review-overruled", "the task passed without a review: the reviewer had refused it as often as it may"),
    ("in-place", "the task passed by a guard that ran in the work tree, without a room"),
    (
        "ignored-worktree",
        "the task passed by a guard that had the ignored files of the work tree, which are in no commit",
    ),
];

impl Trailer {
    /// The commits that have the trailer.
    fn commits(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Outcome | Self::Attempt | Self::Prompt | Self::PromptVersion | Self::Annotation => {
                "iteration"
            }
            Self::Tree => "iteration, edit; milestone and final if they add a task",
            Self::State | Self::Semantics => "iteration, baseline, milestone, final, edit",
            Self::GuardExit => "iteration, baseline, final",
            Self::Room => "iteration, baseline, milestone, final",
            Self::Candidate => "iteration, final",
            Self::Check | Self::Red | Self::Heldout | Self::Review => "iteration",
            Self::Recheck => "milestone, final",
            Self::UserCommits => "iteration, baseline, milestone, final, edit, start",
            Self::PlanImport | Self::Base | Self::Fork => "start",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Edit => "the edit as JSON; `runner verify` applies it again",
            Self::Outcome => "how the iteration ended, one word of a fixed list",
            Self::Attempt => "`charged` or `free`: whether the iteration cost the node an attempt",
            Self::Prompt => "SHA-256 of the prompt",
            Self::PromptVersion => "the built-in templates that the prompt was made from",
            Self::Tree => "SHA-256 of the committed tree.json",
            Self::State => "SHA-256 of the committed run_state.json",
            Self::GuardExit => "the guard's exit code, `signal <n>`, or `none` if it gave no result",
            Self::Room => "where the guard ran: `in-place`, or `bubblewrap` with its ignored files",
            Self::Candidate => {
                "the tree that the guard saw: the committed one, with the runner's documents of the parent"
            }
            Self::Check => {
                "a check of the task that ran: name, how it ended before the work (`failed`, `absent`, `broken`, `green`), how it \
                 ended after it (an exit code, `signal-<n>`, `timed-out`, `not-started`, `no-tests`, `tests-failed`, `tests-missing`, or `none` if it did not run), \
                 and the digest of the checks; one for each"
            }
            Self::Red => {
                "a check of a task with parts that ran before the first session below it: task and name, how it ended, and the \
                 digest of the checks; one for each"
            }
            Self::Heldout => {
                "a held-out check that ran: task and name, how it ended before the work, `pass` or `fail` after it (`none` if it \
                 did not run then), and the digest of the checks; one for each"
            }
            Self::Recheck => {
                "a check of a passed task that ran again: task and name, how it ended, the digest of the checks, and the iteration \
                 that broke it if it failed and that is known; `heldout` after a held-out one; one for each"
            }
            Self::Review => {
                "the review of the work: `accepted`, `refused` or `failed`, which of how many reviews that may refuse, and the \
                 SHA-256 of the record in run_state.json"
            }
            Self::Semantics => "version of the rules that decided the iteration",
            Self::UserCommits => {
                "how many commits of the user's own lie between this commit and the runner's last one"
            }
            Self::PlanImport => "format of the imported plan, and how many nodes it added",
            Self::Base => "the branch that was checked out when the run started; `runner land` lands there",
            Self::Fork => "run and iteration that the fork starts from",
            Self::Annotation => "something valid that a reader should see (below); may occur more than once",
        }
    }
}

/// docs/reference/commits.md, after its introduction.
pub fn reference() -> String {
    let mut page = String::from("## Subjects\n\n| subject | commit |\n| --- | --- |\n");
    for (subject, commit) in SUBJECTS {
        page.push_str(&format!("| `{subject}` | {commit} |\n"));
    }
    page.push_str("\n## Trailers\n\n| trailer | commits | meaning |\n| --- | --- | --- |\n");
    for trailer in Trailer::ALL {
        page.push_str(&format!("| `{trailer}` | {} | {} |\n", trailer.commits(), trailer.meaning()));
    }
    page.push_str("\n## Annotations\n\n| annotation | meaning |\n| --- | --- |\n");
    for (annotation, meaning) in ANNOTATIONS {
        page.push_str(&format!("| `{annotation}` | {meaning} |\n"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Annotation;

    #[test]
    fn every_documented_annotation_is_one() {
        for (annotation, _) in ANNOTATIONS {
            let value = annotation.replace("<path>", "check").replace("<n>", "3");
            let value = value.replace("<name>", "a").replace("<kind>", "green");
            assert_ne!(Annotation::parse(&value), Annotation::Unknown, "{value}");
        }
    }

    #[test]
    fn every_annotation_is_documented() {
        let schema = schemars::schema_for!(Annotation);
        let kinds = schema.get("oneOf").and_then(|kinds| kinds.as_array()).unwrap();
        assert!(kinds.len() >= ANNOTATIONS.len());
        for kind in kinds {
            let name = kind["properties"]["annotation"]["const"].as_str().unwrap().replace('_', "-");
            let is_documented = ANNOTATIONS.iter().any(|(known, _)| known.split(' ').next() == Some(&name));
            assert!(is_documented, "{name}");
        }
    }
}
