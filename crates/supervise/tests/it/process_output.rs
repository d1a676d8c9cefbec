//! However much a program writes or reads, memory use and log size stay bounded and nothing blocks.

use std::fs;

use serde_json::{Value, json};
use testkit::processes::{StreamCounts, wait_for};

use crate::shell;

/// By how much the memory of runner and supervisor may grow.
const GROWTH_KB_MAX: u64 = 8 << 10;

#[test]
fn a_flood_of_output_is_bounded_in_memory_and_on_disk() {
    let script = "head -c 300000000 /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >&2";
    let mut fixture = shell(script);
    fixture.spec.bytes_max = 10 << 20;
    let report = fixture.run();
    assert_eq!((report.exit.as_str(), report.log_error), ("exited with code 0", None));
    let StreamCounts { total, dropped } = report.stdout;
    assert_eq!(total, 300_000_000);
    let log = fixture.log("stdout");
    assert!(log.len() <= 10 << 20 && log.len() > (10 << 20) - 100, "{}", log.len());
    let (head, tail) = log.split_once(&format!("\n[runner: {dropped} bytes dropped here]\n")).unwrap();
    assert_eq!((head.len() + tail.len()) as u64 + dropped, total);
    assert!(fs::metadata(fixture.path("jsonl")).unwrap().len() <= 10 << 20);
    assert!(report.growth_kb <= GROWTH_KB_MAX, "{} kB", report.growth_kb);
    let supervisor_memory = fixture.log("stderr");
    let supervisor_kb: u64 = supervisor_memory.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(supervisor_kb <= GROWTH_KB_MAX, "{supervisor_kb} kB");
}

#[test]
fn a_flood_of_short_lines_is_bounded_in_memory() {
    let mut fixture = shell("yes | head -c 20000000");
    fixture.spec.bytes_max = 4 << 20;
    let report = fixture.run();
    assert!(report.growth_kb <= GROWTH_KB_MAX, "{report:?}");
    let jsonl = fixture.log("jsonl");
    assert!(jsonl.len() <= 4 << 20);
    let lines: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dropped = lines.iter().find_map(|line| line["dropped"]["lines"].as_u64()).unwrap();
    assert_eq!(dropped + lines.len() as u64 - 1, 10_000_000);
}

#[test]
fn characters_at_the_cuts_stay_whole() {
    for shift in 0..5 {
        let script =
            format!("printf '%{shift}s' ''; i=0; while [ $i -lt 400 ]; do printf '🦀é€'; i=$((i+1)); done");
        let mut fixture = shell(&script);
        fixture.spec.bytes_max = 1_000;
        let report = fixture.run();
        let log = fixture.log("stdout");
        let marker = format!("\n[runner: {} bytes dropped here]\n", report.stdout.dropped);
        assert_eq!(log.matches(&marker).count(), 1, "{log}");
    }
}

#[test]
fn streams_are_separate_or_combined_in_order() {
    let script = "i=0; while [ $i -lt 100 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let separate = shell(script);
    let report = separate.run();
    let expected = |word: &str| (0..100).map(|i| format!("{word} {i}\n")).collect::<String>();
    assert_eq!((separate.log("stdout"), separate.log("stderr")), (expected("out"), expected("err")));
    let counts = |total| StreamCounts { total, dropped: 0 };
    assert_eq!((report.stdout, report.stderr), (counts(690), counts(690)));
    let mut combined = shell(script);
    combined.spec.is_combined = true;
    let report = combined.run();
    assert_eq!(combined.log("combined"), (0..100).map(|i| format!("out {i}\nerr {i}\n")).collect::<String>());
    assert_eq!((report.stdout, report.stderr), (counts(1_380), counts(0)));
}

#[test]
fn the_jsonl_copy_has_every_line_with_its_time() {
    let fixture = shell("echo '{\"type\": \"item\"}'; sleep 0.3; echo plain; printf '{\"half'");
    fixture.run();
    let jsonl = fixture.log("jsonl");
    let lines: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let raw: Vec<&Value> = lines.iter().map(|line| &line["raw"]).collect();
    assert_eq!(raw, [&json!({"type": "item"}), &json!("plain"), &json!("{\"half")]);
    let t: Vec<u64> = lines.iter().map(|line| line["t"].as_u64().unwrap()).collect();
    assert!(t.is_sorted() && t[1] >= 300, "{t:?}");
}

#[test]
fn output_can_be_followed_while_the_program_runs() {
    let fixture = shell("echo '{\"early\": 1}'; sleep 1000");
    let mut runner = fixture.start();
    wait_for("the first line", || {
        fixture.log_ends_with("stdout", "{\"early\": 1}\n")
            && fixture.log_ends_with("jsonl", "{\"early\": 1}}\n")
    });
    runner.send("kill");
    assert_eq!(runner.report().exit, "was stopped");
}

#[test]
fn a_long_prompt_never_blocks_whatever_the_program_reads() {
    for size in [900_000, 5_000_000] {
        let scripts = [
            ("true", 0),
            ("sleep 0.3; wc -c", 0),
            ("head -c 1000000 /dev/zero; wc -c", 1_000_000),
            ("head -c 10 >/dev/null; exec <&-; head -c 1000000 /dev/zero", 1_000_000),
        ];
        for (script, noise) in scripts {
            let mut fixture = shell(script);
            let prompt = fixture.path("prompt.md");
            fs::write(&prompt, vec![b'p'; size]).unwrap();
            fixture.spec.stdin = Some(prompt);
            fixture.spec.bytes_max = 4 << 20;
            let report = fixture.run();
            assert_eq!(report.exit, "exited with code 0", "{script}");
            let log = fixture.log("stdout");
            assert_eq!(log.bytes().filter(|byte| *byte == 0).count(), noise, "{script}");
            if script.ends_with("wc -c") {
                assert_eq!(log.trim_matches('\0').trim(), size.to_string(), "{script}");
            }
        }
    }
}

#[test]
fn standard_input_is_empty_by_default() {
    let fixture = shell("wc -c");
    fixture.run();
    assert_eq!(fixture.log("stdout").trim(), "0");
}

#[test]
fn logs_are_not_written_through_planted_links() {
    let fixture = shell("echo mine");
    let victim = fixture.path("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, fixture.path("stdout")).unwrap();
    fs::hard_link(&victim, fixture.path("stderr")).unwrap();
    std::os::unix::net::UnixListener::bind(fixture.path("jsonl")).unwrap();
    assert_eq!(fixture.run().exit, "exited with code 0");
    assert_eq!((fixture.log("stdout").as_str(), fixture.log("victim").as_str()), ("mine\n", "precious"));
}
