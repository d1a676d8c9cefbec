//! Evaluation runs that are killed or interrupted, and continued.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::oracle::assert_no_processes_of;
use testkit::processes::wait_for;
use testkit::test_repo::run;

use crate::{RecordedAttempt, Suite};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Counts results without the program.
fn results_on_disk(suite: &Suite, cases: &[String]) -> usize {
    let mut count = 0;
    for case in cases {
        let folder = suite.repo.path(&format!("eval/results/{case}"));
        count += std::fs::read_dir(folder).map_or(0, Iterator::count);
    }
    count
}

/// `just eval-kill` runs it with 30 cases and 5 trials.
#[test]
fn a_run_killed_at_any_moment_is_continued_with_every_result_once() {
    let cases = setting("EVAL_KILL_CASES", 5);
    let trials_per_case = setting("EVAL_KILL_TRIALS", 2);
    let names: Vec<String> = (1..=cases).map(|number| format!("case-{number:02}")).collect();
    let suite = Suite::with_cases(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let trials_argument = trials_per_case.to_string();
    let trials = cases * trials_per_case;
    let arguments = ["run", "--trials", &trials_argument, "--jobs", "2"];
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos() as usize;
    // Kill it after a random number of results and a random delay, however fast this machine is.
    let count = seed % (trials - 2);
    let delay = Duration::from_millis((seed / trials % 100) as u64);
    let mut child = suite.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    wait_for("some results", || results_on_disk(&suite, &names) >= count);
    std::thread::sleep(delay);
    assert!(
        child.try_wait().unwrap().is_none(),
        "ended {delay:?} after {count} results: nothing was interrupted"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    // Every process that it started ends with it.
    assert_no_processes_of(suite.repo.outside());

    let before = suite.results().len();
    let output = run(&mut suite.command(&arguments)).ok();
    let continued = format!("trials={trials} already_done={before}");
    assert!(output.stdout.contains(&continued), "{delay:?} after {count}: {}", output.stdout);
    let mut results: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for RecordedAttempt { case, trial, attempt, outcome, .. } in suite.results() {
        assert_eq!((attempt, outcome.as_str()), (1, "success"));
        *results.entry((case, trial)).or_default() += 1;
    }
    assert_eq!(results.values().sum::<usize>(), trials, "{delay:?} after {count}");
    assert_eq!(results.len(), trials, "{delay:?} after {count}");
    assert_no_processes_of(suite.repo.outside());
}

#[test]
fn ctrl_c_ends_the_running_trials_and_the_run_can_be_continued() {
    let suite = Suite::with_cases(&["quick"]);
    suite.add("slow", "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n[[session.do]]\nsleep = { ms = 4000 }\n");
    let child = suite.command(&["run", "--jobs", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the first result", || suite.results().len() == 1);
    wait_for("the slow agent's file", || suite.repo.path("eval/workspaces/slow_latest/done.txt").exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let stopped = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&stopped.stdout);
    assert_eq!(stopped.status.code(), Some(130), "{stdout}");
    assert!(stdout.contains("open=1"), "the interrupted trial is open: {stdout}");
    assert_no_processes_of(suite.repo.outside());
    let interrupted = RecordedAttempt {
        case: "slow".to_owned(),
        trial: 1,
        attempt: 1,
        outcome: "error".to_owned(),
        cause: "interrupted".to_owned(),
    };
    assert!(suite.results().contains(&interrupted), "{:?}", suite.results());

    let output = suite.eval(&["run", "--continue"]).ok();
    assert!(output.stdout.contains("already_done=1"), "{}", output.stdout);
    let success = RecordedAttempt {
        attempt: 2,
        outcome: "success".to_owned(),
        cause: "none".to_owned(),
        ..interrupted
    };
    assert!(suite.results().contains(&success), "{:?}", suite.results());
    let error = suite.eval(&["run", "--continue"]).refused(2);
    assert!(error.contains("there is no unfinished run"), "{error}");
}
