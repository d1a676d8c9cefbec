//! Reviews: a second agent that may refuse work which checks and guard accept, a bounded number of times.

use std::process::Stdio;

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Mended, Message, Trailer};
use crate::security::forged_runs::{Forgery, assert_found};

/// The failpoint after a review.
pub(crate) const POINT: &str = "iter.review";

const STATE: &str = ".runner/state/run_state.json";
const ACCEPT: &str = r#"printf '{"verdict": "accept", "reasons": []}' > "$RUNNER_OUTPUT""#;
const REFUSE: &str =
    r#"printf '{"verdict": "refuse", "reasons": ["no test of the empty case"]}' > "$RUNNER_OUTPUT""#;
/// Every session does some work.
const AGENT: &str = r#"echo "$RUNNER_ITER" >> out; answer done"#;

/// A run whose work this shell script reviews.
fn reviewed(script: &str, keys: &str) -> RunBuilder {
    let table = format!("[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\n{keys}\n");
    RunBuilder::new(RUNNER).agent(AGENT).file("reviewer.sh", script).config_tables(&table)
}

fn unconfined(script: &str) -> RunBuilder {
    reviewed(script, "sandbox = \"off\"")
}

fn commit_of(repo: &TestRepo, iter: u32) -> String {
    repo.git(&["log", "-1", "--format=%H", &format!("--grep=iter {iter:04} "), "HEAD"])
}

fn trailers(repo: &TestRepo, iter: u32, key: &str) -> String {
    let format = format!("--format=%(trailers:key={key},valueonly)");
    repo.git(&["log", "-1", &format, &commit_of(repo, iter)]).trim().to_owned()
}

#[test]
fn a_refusal_costs_an_attempt_and_its_reasons_reach_the_next_session() {
    let script = format!("echo looking; if [ \"$RUNNER_ITER\" = 0001 ]; then {REFUSE}; else {ACCEPT}; fi");
    let repo = unconfined(&script).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["review_refused", "passed"]);
    assert_eq!(trailers(&repo, 1, "Runner-Attempt"), "charged");
    assert!(trailers(&repo, 1, "Runner-Review").starts_with("refused 1/2 "));
    assert!(trailers(&repo, 2, "Runner-Review").starts_with("accepted 2/2 "));
    assert_eq!(trailers(&repo, 2, "Runner-Annotation"), "in-place");
    let prompt = repo.iteration_file(2, "prompt.md");
    assert!(prompt.contains("a reviewer refused the work:\n\n- no test of the empty case"), "{prompt}");
    let brief = repo.iteration_file(1, "review.prompt.md");
    for text in ["+0001", "- it runs", "guard `", "review 1 of 2", "no checks of its own"] {
        assert!(brief.contains(text), "{text} in {brief}");
    }
    assert_eq!(repo.iteration_file(1, "review.log"), "looking\n");
    assert!(repo.iteration_file(1, "review.json").contains("\"refuse\""));
    let shown = repo.runner(&["show", "1"]).ok().stdout;
    assert!(shown.contains("refused 1/2 by command:sh reviewer.sh: no test of the empty case"), "{shown}");
    repo.runner(&["replay"]).ok();
    assert_sound(&repo);
}

#[test]
fn a_reviewer_refuses_only_as_often_as_it_may() {
    let repo = unconfined(REFUSE).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["review_refused", "review_refused", "passed"]);
    assert_eq!(trailers(&repo, 3, "Runner-Annotation"), "review-overruled\nin-place");
    assert_eq!(trailers(&repo, 3, "Runner-Review"), "");
    assert!(!repo.path(".runner/iterations/demo/0003/review.prompt.md").exists(), "no review takes place");
    let shown = repo.runner(&["show", "3"]).ok().stdout;
    assert!(shown.contains("review-overruled"), "{shown}");
    assert_sound(&repo);
}

#[test]
fn a_reviewer_without_a_verdict_makes_nothing_pass_and_loses_no_work() {
    for (script, reason) in [
        ("exit 3", "the reviewer left no answer"),
        ("echo accept > \"$RUNNER_OUTPUT\"", "the answer: "),
        (
            "printf '{\"verdict\": \"refuse\", \"reasons\": []}' > \"$RUNNER_OUTPUT\"",
            "a refusal needs a reason",
        ),
        ("kill -9 $$", "signal 9 killed the agent"),
        (
            &format!("echo more >> out; {ACCEPT}"),
            "the reviewer changed files, which the runner restored: out",
        ),
        (&format!("echo new > extra; git add extra; {ACCEPT}"), "the runner restored: extra"),
        (&format!("rm -rf .git/index .runner/state/tree.json out; {ACCEPT}"), "the runner restored:"),
    ] {
        let repo = unconfined(script).start();
        let ran = repo.runner(&["loop"]);
        assert_eq!(ran.code, Some(1), "{script}: {}", ran.stderr);
        assert_eq!(repo.outcomes(), ["review_failed"; 3], "{script}");
        assert_eq!(trailers(&repo, 1, "Runner-Attempt"), "free", "{script}");
        assert!(trailers(&repo, 1, "Runner-Review").starts_with("failed 1/2 "), "{script}");
        let shown = repo.runner(&["show", "1"]).ok().stdout;
        assert!(shown.contains(reason), "{script}: {shown}");
        assert_eq!(repo.git(&["show", "HEAD:out"]), "0001\n0002\n0003", "{script}: the work is kept");
        let files = repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(!files.lines().any(|file| file == "extra"), "{script}: what it wrote is not committed");
        assert_sound(&repo);
    }
}

#[test]
fn a_reviewer_in_a_sandbox_cannot_change_the_repository() {
    let script = format!("echo more 2>/dev/null >> out || echo denied; touch .runner/x .git/x; {ACCEPT}");
    let repo = reviewed(&script, "sandbox = \"require\"").start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert!(repo.iteration_file(1, "review.log").contains("denied"));
    assert_eq!(repo.git(&["show", "HEAD:out"]), "0001");
    assert_sound(&repo);
}

/// The work tree has more than the commit will have: ignored files, logs of sessions, the runner's private folder.
#[test]
fn a_reviewer_in_a_sandbox_sees_the_candidate_and_nothing_else_of_the_work_tree() {
    let agent = r#"echo secret > ignored; echo "$RUNNER_ITER" >> out; answer done"#;
    let script = format!(
        "cat out; test -e ignored && echo ignored is here; ls .runner/iterations/*/*; ls .git/runner; git status --porcelain; \
         git log --format=%T -1; touch .runner/x .git/x out 2>/dev/null && echo written; {ACCEPT}"
    );
    for guard in ["room = \"in-place\"", "room = \"require\""] {
        let builder = reviewed(&script, "sandbox = \"require\"").agent(agent).guard_keys(guard);
        let repo = builder.start();
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.outcomes(), ["passed"], "{guard}");
        let candidate = trailers(&repo, 1, "Runner-Candidate");
        assert_eq!(
            repo.iteration_file(1, "review.log"),
            format!("0001\nreview.prompt.md\nanswers\n{candidate}\n"),
            "{guard}"
        );
        assert!(!repo.path(".git/runner/review-room").exists(), "the checkout is removed");
        assert_eq!(repo.read("ignored"), "secret\n");
        assert_sound(&repo);
    }
}

#[test]
fn a_crash_after_the_review_is_recovered() {
    let repo = unconfined(&format!("echo more >> out; git commit -qam sneaky; {ACCEPT}")).start();
    let ran = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", POINT));
    assert_eq!(ran.code, None, "the point was not reached");
    assert_eq!(repo.runner(&["loop"]).code, Some(1));
    assert_eq!(repo.outcomes(), ["review_failed"; 3]);
    assert_eq!(repo.git(&["show", "HEAD:out"]), "0001\n0002\n0003", "what the reviewer committed is gone");
    assert_sound(&repo);
}

#[test]
fn a_signal_during_a_review_stops_gracefully() {
    let repo = unconfined("touch \"$(dirname \"$HOME\")/begun\"; exec sleep 1000").start();
    let mut command = repo.runner_command(&["loop"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the review", || repo.outside().join("begun").exists());
    run(repo.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(repo.outcomes(), ["interrupted"]);
    assert_eq!(trailers(&repo, 1, "Runner-Attempt"), "free");
    assert_eq!(repo.git(&["show", "HEAD:out"]), "0001");
    assert_sound(&repo);
}

#[test]
fn reviews_count_towards_the_budget_and_waits_are_for_the_reviewer() {
    let report = r#"printf '{"usage": {"input_tokens": 70, "output_tokens": 7}}' > "$RUNNER_REPORT""#;
    let table = "[budget]\nrun_tokens = 100\n";
    let repo = unconfined(&format!("{report}; {REFUSE}"));
    let agent = r#"printf '{"usage": {"input_tokens": 30}}' > "$RUNNER_REPORT"; echo x >> out; answer done"#;
    let review = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n";
    let repo = repo.agent(agent).config_tables(&format!("{review}{table}")).start();
    assert_eq!(repo.runner(&["loop"]).code, Some(4));
    assert_eq!(repo.outcomes(), ["review_refused"]);
    assert!(repo.git(&["show", &format!("HEAD:{STATE}")]).contains("\"tokens\": 107"));
    assert_sound(&repo);

    let overloaded = r#"echo '{"fault": {"fault": "overloaded"}}' > "$RUNNER_REPORT"; exit 1"#;
    let repo = unconfined(overloaded).start();
    repo.runner(&["step"]);
    assert_eq!(repo.outcomes(), ["overloaded"]);
    let status = repo.runner(&["status"]).stdout;
    assert!(status.contains("command:sh reviewer.sh"), "{status}");
    assert_sound(&repo);
}

#[test]
fn a_missing_reviewer_is_found_before_the_loop_and_the_same_model_by_doctor() {
    let table = "[review]\nkind = \"command\"\ncommand = [\"no-such-reviewer\"]\n";
    let repo = RunBuilder::new(RUNNER).config_tables(table).start();
    let ran = repo.runner(&["loop"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("`no-such-reviewer` is not on PATH"), "{}", ran.stderr);
    let repo = RunBuilder::new(RUNNER).config_tables("[review]\nrounds = 1\n").start();
    let found = repo.runner(&["doctor"]).stdout;
    assert!(found.contains("reviewer and worker are the same model"), "{found}");
}

/// Refused, failed, refused, overruled.
const FORGED_REVIEWER: &str = "case \"$RUNNER_ITER\" in 0002) exit 1 ;; *) REFUSE ;; esac";

const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(1, "Outcome: review_refused", "Outcome: passed"), Rule::Review, 1),
    (Message(1, "Outcome: review_refused", "Outcome: review_failed"), Rule::Review, 1),
    (Message(1, "Review: refused", "Review: accepted"), Rule::Review, 1),
    (Message(1, "refused 1/2", "refused 2/2"), Rule::Review, 1),
    (Message(1, "Runner-Review: refused", "Runner-Other: refused"), Rule::Review, 1),
    (Message(2, "Outcome: review_failed", "Outcome: passed"), Rule::Review, 2),
    (Message(2, "Attempt: free", "Attempt: charged"), Rule::Charge, 2),
    (
        Message(4, "Runner-Annotation: review-overruled", "Runner-Annotation: nothing-changed"),
        Rule::Annotations,
        4,
    ),
    (Trailer(4, "Runner-Review: accepted 3/2 0"), Rule::Review, 4),
    (Mended(1, STATE, "\"result\": \"refused\"", "\"result\": \"accepted\""), Rule::Review, 1),
    (Mended(1, STATE, "\"count\": 1", "\"count\": 2"), Rule::RunState, 1),
    (Mended(3, STATE, "\"count\": 2", "\"count\": 1"), Rule::RunState, 3),
    (Mended(1, STATE, "no test of the empty case", "a test"), Rule::RunState, 1),
    (Mended(1, STATE, "\"agent\": \"command:sh reviewer.sh\"", "\"agent\": \"claude\""), Rule::RunState, 1),
];

#[test]
fn verify_names_the_rule_that_a_forged_review_violates() {
    let script = FORGED_REVIEWER.replace("REFUSE", REFUSE);
    let repo = unconfined(&script).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["review_refused", "review_failed", "review_refused", "passed"]);
    assert_sound(&repo);
    assert_found(&repo, FORGERIES);
}
