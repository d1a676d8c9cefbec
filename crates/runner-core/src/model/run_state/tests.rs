//! Tests of run_state.json: strict decoding, and the same bytes after a round trip.

use super::*;
use crate::model::cost::amount;
use crate::model::digest::Sha256;
use crate::model::environment::{LockFile, ToolVersion};
use crate::model::heldout::HeldoutCheck;
use crate::model::progress::{LeafFailure, UnconfirmedClaim};
use crate::model::review::{RecordedReview, ReviewResult, TaskRefusals};
use crate::step::{CostSource, Ordinal};

#[test]
#[expect(clippy::too_many_lines, reason = "one value with every field set")]
fn a_state_is_decoded_as_it_was_written() {
    let fresh = RunState::new(None);
    let full = RunState {
        run_id: Some(RunId::new("x").unwrap()),
        next_iter: IterationNumber::new(7).unwrap(),
        last_status: Some(AgentStatus::Done),
        last_summary: Some("quote \"é\"\n".to_owned()),
        last_guard: Some(GuardResult::Fail),
        last_node: Some(NodeId::root()),
        last_outcome: Some(Outcome::InvalidTree),
        failures_in_row: 2,
        transients_in_row: 1,
        node_history: vec![NodeHistory {
            node: NodeId::root(),
            iter: IterationNumber::FIRST,
            outcome: Outcome::GuardFailed,
            summary: "s".to_owned(),
            notes: vec!["n".to_owned()],
            notes_omitted: 3,
            restored: vec![RepoPath::of_bytes(b"check")],
            restored_omitted: 4,
            guard_output: Some("red".to_owned()),
            later_outcome: Some(Outcome::Interrupted),
        }],
        repair: Some(PendingRepair {
            iter: IterationNumber::FIRST,
            node: NodeId::root(),
            mode: SessionMode::Leaf,
            tries: 1,
            rejected: "{".to_owned(),
            errors: vec!["e".to_owned()],
            errors_omitted: 5,
        }),
        replanned: vec![NodeId::root()],
        pinned: vec![RepoPath::of_bytes(b"justfile")],
        progress: Progress {
            outages: 1,
            timeouts_in_row: 2,
            iterations_without_pass: 3,
            green_checks: 2,
            unconfirmed: Some(UnconfirmedClaim {
                node: NodeId::root(),
                iter: IterationNumber::FIRST,
                task_sha256: Sha256::of(b"task"),
            }),
            must_split: Some(NodeId::root()),
            leaf_failures: vec![LeafFailure { node: NodeId::root(), signature: None, rungs: 4 }],
        },
        wait: Some(Wait {
            agent: "codex".to_owned(),
            outcome: Outcome::UsageLimit,
            secs: BoundedInt::fixed::<0>(),
            until_unix_secs: Some(amount(7)),
            secs_max: BoundedInt::fixed::<60>(),
        }),
        usage_limits: vec![UsageLimit {
            agent: "codex".to_owned(),
            node: NodeId::root(),
            resets_unix_secs: None,
        }],
        spent: RunSpending { tokens: amount(9), ..RunSpending::default() },
        spent_by_leaf: vec![LeafSpending {
            node: NodeId::root(),
            tokens: amount(9),
            microdollars: amount(0),
        }],
        baseline: Some(RecordedGuardRun {
            guard: GuardResult::Fail,
            exit: "1".to_owned(),
            room: Some(RoomLevel::InPlace),
            output: Some("x".to_owned()),
            next_iter: IterationNumber::FIRST,
        }),
        final_check: Some(RecordedGuardRun {
            guard: GuardResult::Pass,
            exit: "0".to_owned(),
            room: Some(RoomLevel::InPlace),
            output: None,
            next_iter: IterationNumber::FIRST,
        }),
        last_room: Some(RoomLevel::InPlace),
        guard_error: Some("no such program".to_owned()),
        proofs: vec![TaskProof {
            node: NodeId::root(),
            digest: Sha256::of(b"x"),
            checks: vec![crate::model::checks::CheckRed {
                name: crate::model::checks::CheckName::new("a").unwrap(),
                red: crate::model::checks::RedKind::Absent,
                facts: Some(crate::model::checks::RedFacts {
                    ran: Some(3),
                    skipped: None,
                    redirects: vec!["tests/conftest.py".to_owned()],
                }),
            }],
        }],
        review: ReviewState {
            last: Some(RecordedReview {
                agent: "claude".to_owned(),
                round: Ordinal { nth: 1, of: 2 },
                result: ReviewResult::Refused,
                reasons: vec!["no test".to_owned()],
                tokens: Some(amount(5)),
                microdollars: None,
                cost_source: CostSource::Unknown,
            }),
            refusals: vec![TaskRefusals { node: NodeId::root(), count: 1 }],
        },
        protection: Some(Protection { files: vec!["justfile".to_owned()], ..Protection::default() }),
        instructions: Some(PinnedInstructions::sample()),
        ratchet: Ratchet { due: vec![NodeId::root()], tasks: 1, regressed: Vec::new() },
        plan_approval: Some(Sha256::of(b"plan")),
        heldout: vec![HeldoutTask {
            node: NodeId::root(),
            digest: Sha256::of(b"x"),
            checks: vec![HeldoutCheck {
                name: crate::model::checks::CheckName::new("h").unwrap(),
                covers: Vec::new(),
                required: crate::model::checks::RedRule::Required,
                red: Some(crate::model::checks::RedKind::Failed),
            }],
        }],
        environment: Environment {
            tools: vec![ToolVersion { tool: "cargo".to_owned(), version: None }],
            locks: vec![LockFile { path: RepoPath::of_bytes(b"Cargo.lock"), digest: Sha256::of(b"") }],
        },
        semantics: SEMANTICS,
    };
    for state in [fresh, full] {
        assert_eq!(RunState::decode(&state.to_bytes()), Ok(state));
    }
}

const REST: &str = "\"last_node\": null, \"last_outcome\": null, \"failures_in_row\": 0, \
    \"transients_in_row\": 0, \"node_history\": [], \"repair\": null, \"replanned\": [], \"pinned\": [], \
    \"progress\": {\"outages\": 0, \"timeouts_in_row\": 0, \"iterations_without_pass\": 0, \"green_checks\": 0, \
    \"unconfirmed\": null, \"must_split\": null, \"leaf_failures\": []}, \"wait\": null, \"usage_limits\": [], \"spent\": {\"tokens\": 0, \"microdollars\": 0, \
    \"estimated_microdollars\": 0, \"sessions_without_tokens\": 0, \"sessions_without_cost\": 0}, \
    \"spent_by_leaf\": [], \"semantics\": 1}";

#[test]
fn lists_name_what_they_omit() {
    let history = NodeHistory {
        node: NodeId::root(),
        iter: IterationNumber::FIRST,
        outcome: Outcome::RuleViolation,
        summary: String::new(),
        notes: vec!["n".to_owned()],
        notes_omitted: 2,
        restored: vec![RepoPath::of_bytes(b"check")],
        restored_omitted: 0,
        guard_output: None,
        later_outcome: None,
    };
    let restored = "`check` is protected: the runner restored it";
    assert_eq!(history.note_lines(), ["n", "… and 2 more", restored]);
    let more = NodeHistory { notes_omitted: 0, restored_omitted: 7, ..history };
    let omitted = "… and 7 more protected files, which the runner restored";
    assert_eq!(more.note_lines(), ["n", restored, omitted]);
}

#[test]
fn every_key_is_required_and_no_other_is_allowed() {
    let problems = |text: &str| {
        RunState::decode(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(problems("{}").len(), 19);
    let newer = String::from_utf8(RunState::new(None).to_bytes()).unwrap();
    let newer = newer.replace("\"semantics\": 1", "\"semantics\": 2");
    assert_eq!(problems(&newer), ["line 34: `semantics` is 2, but this runner only knows 1"]);
    assert_eq!(
        problems(&format!(
            "{{\"run_id\": \"a b\",\n\"next_iter\": 0,\n\"last_status\": null,\n\"last_summary\": null,\n\"last_gard\": null,{REST}"
        )),
        [
            "line 1: `run_id` is invalid: \"a b\" contains ' '; only letters, digits, `.`, `_` and `-` are allowed",
            "line 1: `last_guard` is missing",
            "line 2: `next_iter` is invalid: invalid value: integer `0`, expected an integer from 1 to 4294967295",
            "line 5: `last_gard` is not a known key; did you mean `last_guard`?",
        ]
    );
}

#[test]
fn findings_are_separated_on_one_line_and_an_agents_lines_are_not() {
    let note = |outcome, text: &str| {
        let fresh = RunState::new(None);
        RunState { last_outcome: Some(outcome), last_summary: Some(text.to_owned()), ..fresh }
            .last_note_line()
    };
    let crashed = note(Outcome::AgentCrashed, "the agent exited with code 1\n\nthe agent left no answer");
    assert_eq!(crashed, "the agent exited with code 1; the agent left no answer");
    assert_eq!(note(Outcome::Retry, "half of it\nworks"), "half of it works");
}
