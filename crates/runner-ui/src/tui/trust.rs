//! Whether the history of the run holds: verified on a thread of its own when the run is not live, and how the result is shown.

use std::sync::mpsc::{Receiver, Sender};

use runner_core::format::counted;
use runner_core::labels::{Label, Symbol, Tone};
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::run_status::LifecycleState;
use runner_term::TextRole;

use super::reader::ReadReason;
use crate::api::{PageSnapshot, VerifyFinding, VerifyResult, VerifyVerdict};
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::verify;

/// The state of a run whose history violates a rule, whatever its documents claim.
const UNTRUSTED: Label = Label { text: "untrusted", symbol: Symbol::Cross, tone: Tone::Fail };

/// Requests the verification of a run, once for every tip of its branch.
#[derive(Debug)]
pub(super) struct TrustRequests {
    sender: Sender<RunSource>,
    requested: Option<(RunId, CommitId)>,
}

impl TrustRequests {
    pub(super) fn new(sender: Sender<RunSource>) -> Self {
        Self { sender, requested: None }
    }

    /// Requests the verification of a run that is not live and whose result is unknown. Returns whether one is due.
    pub(super) fn request(&mut self, run: &RunSource, snapshot: &PageSnapshot) -> bool {
        if snapshot.trust.is_some() || !is_to_be_verified(snapshot) {
            return false;
        }
        let Some(branch) = &run.branch else { return false };
        let wanted = (run.id.clone(), branch.commit.clone());
        if self.requested.as_ref() == Some(&wanted) {
            return true;
        }
        self.requested = Some(wanted);
        self.sender.send(run.clone()).is_ok()
    }
}

fn is_to_be_verified(snapshot: &PageSnapshot) -> bool {
    let has_ended = match snapshot.status.state {
        LifecycleState::Complete
        | LifecycleState::Stopped
        | LifecycleState::Paused
        | LifecycleState::Crashed => true,
        LifecycleState::NoRun
        | LifecycleState::Invalid
        | LifecycleState::Running
        | LifecycleState::Waiting => false,
    };
    has_ended && snapshot.progress.iterations > 0
}

/// Verifies every requested run, and has the data read again after each.
pub(super) fn serve(project: &RepoReader, requests: &Receiver<RunSource>, reads: &Sender<ReadReason>) {
    while let Ok(first) = requests.recv() {
        // Only the newest request is about the run as it is now.
        let run = requests.try_iter().last().unwrap_or(first);
        project.verify_result(&run, || verify::verify(project, &run));
        if reads.send(ReadReason::Changed).is_err() {
            return;
        }
    }
}

fn violated(snapshot: &PageSnapshot) -> Option<&VerifyResult> {
    snapshot.trust.as_ref().filter(|trust| trust.verdict == VerifyVerdict::Violated)
}

/// The state of the run.
pub(super) fn state_label(snapshot: &PageSnapshot) -> Label {
    if violated(snapshot).is_some() { UNTRUSTED } else { snapshot.status.label() }
}

/// The sentence beside the state.
pub(super) fn headline(snapshot: &PageSnapshot) -> &str {
    violated(snapshot).map_or(&snapshot.status.headline, |trust| &trust.summary)
}

/// The result as a part of the progress line, with the number of commits where there is room for it.
pub(super) fn badge(
    snapshot: &PageSnapshot,
    is_verifying: bool,
    has_room: bool,
) -> Option<(TextRole, String)> {
    if is_verifying {
        return Some((TextRole::Faint, "verifying".to_owned()));
    }
    let trust = snapshot.trust.as_ref()?;
    Some(match trust.verdict {
        VerifyVerdict::Verified if !has_room => (TextRole::Good, "verified".to_owned()),
        VerifyVerdict::Verified => {
            (TextRole::Good, format!("verified, {}", counted(trust.commits, "commit", "commits")))
        }
        VerifyVerdict::Violated => (TextRole::Bad, counted(trust.violations, "violation", "violations")),
        VerifyVerdict::Partial => (TextRole::Warn, "partly verified".to_owned()),
        VerifyVerdict::Unknown => (TextRole::Warn, "not verified".to_owned()),
    })
}

/// One line for each violation; none for a run that can be trusted.
pub(super) fn findings(snapshot: &PageSnapshot) -> Option<Vec<String>> {
    Some(violated(snapshot)?.findings.iter().map(finding_text).collect())
}

fn finding_text(finding: &VerifyFinding) -> String {
    let commit = finding.commit.get(..7).unwrap_or(&finding.commit);
    let iter = finding.iter.map(|iter| format!(" #{iter}")).unwrap_or_default();
    let requirement = match finding.requirement.as_str() {
        "" => "a rule of a newer runner",
        text => text,
    };
    format!("{commit}{iter} {}: {requirement}", finding.rule)
}

/// Whether commands are shown: the advice about a complete run waits for its verification.
pub(super) fn has_advice(snapshot: &PageSnapshot, is_verifying: bool) -> bool {
    !(is_verifying && snapshot.status.state == LifecycleState::Complete)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::reader::WatchData;
    use super::super::tests::{drawn, stuck, view_of};
    use super::*;
    use runner_core::run_status::NextCommand;
    use runner_host::repo::readonly_repo::RunBranch;

    fn result(verdict: VerifyVerdict, findings: Vec<VerifyFinding>) -> VerifyResult {
        VerifyResult {
            verdict,
            summary: "verification failed: 1 violation, the first in 3185e9a".to_owned(),
            violations: findings.len(),
            findings,
            commits: 22,
            iterations: 20,
            unchecked: Vec::new(),
            command: Some("runner verify nightly".to_owned()),
        }
    }

    /// A complete run, whose documents advise to land it.
    fn complete(trust: Option<VerifyResult>) -> WatchData {
        let mut data = stuck();
        data.snapshot.status.state = LifecycleState::Complete;
        data.snapshot.status.stop = None;
        data.snapshot.status.headline = "all 4 tasks passed".to_owned();
        data.snapshot.status.next =
            vec![NextCommand { what: "land the work".to_owned(), command: "runner land".to_owned() }];
        data.snapshot.trust = trust;
        data
    }

    #[test]
    fn verified_run_has_a_seal_on_every_size() {
        let data = complete(Some(result(VerifyVerdict::Verified, Vec::new())));
        let wide = drawn(&mut view_of(&data), &data, (80, 24));
        assert!(wide.contains("COMPLETE") && wide.contains("verified, 22 commits"), "{wide}");
        assert!(wide.contains("runner land"), "{wide}");
        let narrow = drawn(&mut view_of(&data), &data, (40, 15));
        assert!(narrow.contains("1/4 tasks  verified\n"), "{narrow}");
    }

    #[test]
    fn violated_run_is_untrusted_and_lists_what_was_violated() {
        let finding = VerifyFinding {
            rule: "passed_changed".to_owned(),
            requirement: "A passed task is not changed.".to_owned(),
            commit: "3185e9a".repeat(5),
            iter: Some(4),
            expected: String::new(),
            found: String::new(),
        };
        let data = complete(Some(result(VerifyVerdict::Violated, vec![finding])));
        let text = drawn(&mut view_of(&data), &data, (80, 24));
        assert!(text.starts_with("✗ UNTRUSTED  nightly  verification failed: 1 violation"), "{text}");
        assert!(!text.contains("COMPLETE") && !text.contains("all 4 tasks passed"), "{text}");
        assert!(text.contains("rule  3185e9a #4 passed_changed: A passed task is not changed."), "{text}");
        assert!(text.contains("1 violation"), "{text}");
    }

    #[test]
    fn advice_on_a_complete_run_waits_for_its_verification() {
        let mut data = complete(None);
        data.is_verifying = true;
        let text = drawn(&mut view_of(&data), &data, (80, 24));
        assert!(text.contains("verifying") && !text.contains("runner land"), "{text}");
        data.snapshot.trust = Some(result(VerifyVerdict::Unknown, Vec::new()));
        data.is_verifying = false;
        let text = drawn(&mut view_of(&data), &data, (80, 24));
        assert!(text.contains("not verified") && text.contains("runner land"), "{text}");
    }

    #[test]
    fn verification_is_requested_once_for_each_tip_of_a_run_that_is_not_live() {
        let (sender, received) = mpsc::channel();
        let mut requests = TrustRequests::new(sender);
        let commit = |digit: &str| CommitId::new(digit.repeat(40)).unwrap();
        let run_at = |digit: &str| {
            let run = RunId::new("nightly").unwrap();
            let branch =
                RunBranch { run: run.clone(), name: String::new(), commit: commit(digit), unix_secs: 0 };
            RunSource { id: run, branch: Some(branch), is_here: true }
        };
        let mut data = complete(None);
        for state in [LifecycleState::Running, LifecycleState::Waiting, LifecycleState::NoRun] {
            data.snapshot.status.state = state;
            assert!(!requests.request(&run_at("a"), &data.snapshot), "{state:?}");
        }
        for state in [
            LifecycleState::Complete,
            LifecycleState::Stopped,
            LifecycleState::Paused,
            LifecycleState::Crashed,
        ] {
            data.snapshot.status.state = state;
            assert!(requests.request(&run_at("a"), &data.snapshot), "{state:?}");
        }
        assert!(requests.request(&run_at("b"), &data.snapshot));
        assert!(!requests.request(&RunSource { branch: None, ..run_at("b") }, &data.snapshot));
        let requested: Vec<_> = received.try_iter().map(|run| run.branch.unwrap().commit).collect();
        assert_eq!(requested, [commit("a"), commit("b")]);
        data.snapshot.trust = Some(result(VerifyVerdict::Verified, Vec::new()));
        assert!(!requests.request(&run_at("c"), &data.snapshot));
    }
}
