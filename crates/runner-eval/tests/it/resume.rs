//! A run that is broken off, and gone on with.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::oracle::assert_nothing_of;
use testkit::processes::wait_for;
use testkit::test_repo::run;

use crate::Suite;

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// How many results there are, without asking the program.
fn results_on_disk(suite: &Suite, cases: &[String]) -> usize {
    let folder = |case: &String| suite.sandbox.path(&format!("eval/results/{case}"));
    let results = |case: &String| std::fs::read_dir(folder(case)).map_or(0, Iterator::count);
    cases.iter().map(results).sum()
}

/// `just eval-kill` does it with 30 cases and 5 trials.
#[test]
fn a_run_killed_at_any_moment_and_begun_again_has_every_result_once() {
    let (cases, trials) = (setting("EVAL_KILL_CASES", 5), setting("EVAL_KILL_TRIALS", 2));
    let names: Vec<String> = (1..=cases).map(|at| format!("case-{at:02}")).collect();
    let suite = Suite::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (trials_word, units) = (trials.to_string(), cases * trials);
    let words = ["run", "--trials", &trials_word, "--jobs", "2"];
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos() as usize;
    // Somewhere in its course, however long that takes here: at so many results, and a little later.
    let (count, later) = (seed % (units - 2), Duration::from_millis((seed / units % 100) as u64));
    let mut child = suite.command(&words).stdout(Stdio::null()).spawn().unwrap();
    wait_for("some results", || results_on_disk(&suite, &names) >= count);
    std::thread::sleep(later);
    assert!(
        child.try_wait().unwrap().is_none(),
        "over {later:?} after {count} results: nothing was broken off"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    // Whatever the dead one had started ends with it.
    assert_nothing_of(suite.sandbox.outside());

    let before = suite.results().len();
    let ran = run(&mut suite.command(&words)).ok();
    let had = format!("units={units} had={before}");
    assert!(ran.stdout.contains(&had), "{later:?} after {count}: {}", ran.stdout);
    let mut seen: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for (case, trial, attempt, outcome, _) in suite.results() {
        assert_eq!((attempt, outcome.as_str()), (1, "success"));
        *seen.entry((case, trial)).or_default() += 1;
    }
    assert_eq!(seen.values().sum::<usize>(), units, "{later:?} after {count}");
    assert_eq!(seen.len(), units, "{later:?} after {count}");
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
