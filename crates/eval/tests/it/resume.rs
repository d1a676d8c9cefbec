//! A run that is broken off, and gone on with.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use testkit::oracle::assert_nothing_of;
use testkit::processes::wait_for;
use testkit::repo::run;

use crate::Suite;

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// `just eval-kill` does it with 30 cases and 5 trials.
#[test]
fn a_run_killed_at_any_moment_and_begun_again_has_every_result_once() {
    let (cases, trials) = (setting("EVAL_KILL_CASES", 5), setting("EVAL_KILL_TRIALS", 2));
    let names: Vec<String> = (1..=cases).map(|at| format!("case-{at:02}")).collect();
    let suite = Suite::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (trials_word, units) = (trials.to_string(), cases * trials);
    let words = ["run", "--trials", &trials_word, "--jobs", "2"];
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let wait = Duration::from_millis(u64::from(seed) % (300 * units as u64));
    let mut child = suite.command(&words).stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + wait;
    while Instant::now() < until && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let was_over = child.try_wait().unwrap().is_some();
    child.kill().unwrap();
    child.wait().unwrap();
    // Whatever the dead one had started ends with it.
    assert_nothing_of(suite.sandbox.outside());

    let before = suite.results().len();
    let ran = run(&mut suite.command(&words)).ok();
    if !was_over {
        assert!(
            ran.stdout.contains(&format!("units={units} had={before}")),
            "after {wait:?}: {}",
            ran.stdout
        );
    }
    let expected = if was_over { 2 * units } else { units };
    let mut seen: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for (case, trial, attempt, outcome, _) in suite.results() {
        assert_eq!((attempt, outcome.as_str()), (1, "success"));
        *seen.entry((case, trial)).or_default() += 1;
    }
    assert_eq!(seen.values().sum::<usize>(), expected, "after {wait:?}");
    assert_eq!(seen.len(), units, "after {wait:?}");
    assert_nothing_of(suite.sandbox.outside());
}

#[test]
fn ctrl_c_ends_the_trials_under_way_and_the_same_command_goes_on() {
    let suite = Suite::of(&["quick"]);
    suite.add("slow", "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n[[session.do]]\nsleep = { ms = 4000 }\n");
    let mut child = suite.command(&["run", "--jobs", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the first result", || suite.results().len() == 1);
    wait_for("the slow one's work", || suite.sandbox.path("eval/workspaces/slow_latest/done.txt").exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_nothing_of(suite.sandbox.outside());
    let interrupted = ("slow".to_owned(), 1, 1, "error".to_owned(), "interrupted".to_owned());
    assert!(suite.results().contains(&interrupted), "{:?}", suite.results());

    let ran = suite.eval(&["run", "--continue"]).ok();
    assert!(ran.stdout.contains("had=1"), "{}", ran.stdout);
    assert!(suite.results().contains(&("slow".to_owned(), 1, 2, "success".to_owned(), "none".to_owned())));
    let told = suite.eval(&["run", "--continue"]).refused(2);
    assert!(told.contains("every run is finished"), "{told}");
}
