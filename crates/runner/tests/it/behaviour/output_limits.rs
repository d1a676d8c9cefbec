//! Large amounts of output, prompt text and files.

use testkit::oracle::assert_sound;
use testkit::processes::{kilobytes, wait_for};
use testkit::run_builder::RunBuilder;
#[cfg(target_os = "linux")]
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

#[test]
fn three_hundred_megabytes_of_output_are_cut_to_the_limit() {
    let line = "0123456789abcde ".repeat(512);
    let agent = format!(
        "echo beginning; yes '{line}' | head -c 300000000; echo; echo end; touch $AROUND/printed
         while ! test -e $AROUND/go; do sleep 0.01; done; answer done"
    );
    let sandbox = RunBuilder::new(RUNNER).agent(&agent).keys("executor_output_limit_bytes = 8388608").start();
    let mut child = sandbox.runner_command(&["loop"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_for("the flood's end", || sandbox.outside().join("printed").exists());
    let peak = kilobytes(&child.id().to_string(), "VmHWM");
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(peak > 0 && peak < 100_000, "{peak} kilobytes");
    let log = sandbox.iteration_file(1, "executor.log");
    assert!(log.len() <= 8_388_608 && log.len() > 8_000_000, "{}", log.len());
    assert!(log.starts_with("beginning\n") && log.ends_with("\nend\n"));
    let (kept, rest) = log.split_once("[runner: ").unwrap();
    let (dropped, end) = rest.split_once(" bytes dropped here]\n").unwrap();
    let dropped: usize = dropped.parse().unwrap();
    let whole = "beginning\n".len() + 300_000_000 + "\nend\n".len();
    assert!(
        (kept.trim_end().len() + dropped + end.len()).abs_diff(whole) <= 1,
        "all bytes are accounted for"
    );
    assert!(sandbox.read_bytes(".runner/iterations/demo/0001/stream.jsonl").len() <= 8_388_608);
    assert_sound(&sandbox);
}

#[test]
fn prompt_of_nine_hundred_kilobytes_arrives_complete() {
    let goal: String = (0..24_800).map(|nth| format!("- requirement number {nth} ä€🦀\n")).collect();
    // It writes before it reads its prompt, and then reads all of it.
    let agent =
        "head -c 1000000 /dev/zero; cat > $AROUND/stdin; cmp $AROUND/stdin $RUNNER_PROMPT && answer done";
    let setup = RunBuilder::new(RUNNER).agent(agent).keys("prompt_budget_bytes = 1000000");
    let sandbox = setup.goal(&format!("# Much\n\n{goal}")).start();
    sandbox.runner(&["loop"]).ok();
    let prompt = std::fs::read_to_string(sandbox.outside().join("stdin")).unwrap();
    assert!(prompt.len() > 900_000, "{}", prompt.len());
    assert!(prompt.contains("requirement number 24799 ä€🦀"));
    assert_sound(&sandbox);

    // An agent that never reads its prompt does not block the runner.
    let setup = RunBuilder::new(RUNNER).agent("answer done").keys("prompt_budget_bytes = 1000000");
    setup.goal(&format!("# Much\n\n{goal}")).start().runner(&["loop"]).ok();
}

#[test]
fn document_that_grows_too_large_is_restored() {
    let agent = "head -c 60000000 /dev/zero > README.md; echo more > new.txt; answer done";
    let guard = "test $(cat README.md | wc -c) -lt 100";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).guard(guard).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.git(&["show", "HEAD:README.md"]), "hello");
    assert_eq!(sandbox.read("README.md"), "hello\n");
    let aside = std::fs::metadata(sandbox.path(".git/runner/aside/0001/1-README.md")).unwrap();
    assert_eq!(aside.len(), 60_000_000, "nothing is lost");
    assert_sound(&sandbox);
}

#[test]
fn thousands_of_files_are_committed_in_one_iteration() {
    let agent = "mkdir many; for n in $(seq 2000); do echo $n > many/$n; done; answer retry";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["step"]).ok();
    sandbox.replace_agent("rm -r many; answer done");
    sandbox.runner(&["loop"]).ok();
    assert_eq!(
        sandbox.git(&["show", "--format=", "--shortstat", "HEAD", "--", "many"]),
        " 2000 files changed, 2000 deletions(-)"
    );
    assert_sound(&sandbox);
}

/// The calls of all processes of a step that wait for the disk.
#[cfg(target_os = "linux")]
fn count_syncs(sandbox: &TestRepo) -> usize {
    let log = sandbox.outside().join("syncs");
    let mut strace = sandbox.command("strace");
    strace
        .args([
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-e",
            "trace=fsync,fdatasync,syncfs,sync,msync,sync_file_range",
            "-o",
        ])
        .arg(&log);
    let output = run(strace.arg(RUNNER).arg("step"));
    assert_eq!(output.code, Some(0), "this test needs `strace`: {}", output.stderr);
    let trace = std::fs::read_to_string(log).unwrap();
    trace.lines().filter(|line| line.contains("sync") && !line.contains(" resumed>")).count()
}

#[cfg(target_os = "linux")]
#[test]
fn three_thousand_new_files_cost_few_syncs() {
    for room in ["in-place", "require"] {
        let agent = "mkdir many; for n in $(seq 3000); do echo $n > many/$n; done; answer done";
        let setup = RunBuilder::new(RUNNER).agent(agent).guard("test $(ls many | wc -l) = 3000");
        let sandbox = setup.guard_keys(&format!("room = \"{room}\"")).start();
        let syncs = count_syncs(&sandbox);
        assert_eq!(sandbox.outcomes(), ["passed"], "{room}");
        assert_eq!(
            sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD", "--", "many"]).lines().count(),
            3000
        );
        assert!((3..=50).contains(&syncs), "{room}: {syncs}");
        assert_sound(&sandbox);
    }
}
