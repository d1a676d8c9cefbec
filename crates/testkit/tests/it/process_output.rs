//! However much a program writes, memory stays flat and the logs stay small; whatever it reads, nobody waits.

use std::fs;

use serde_json::{Value, json};
use testkit::processes::{ProcessFixture, wait_for};

use crate::LAUNCH;

/// What runner and supervisor may grow by.
const GROWTH_KB_MAX: u64 = 8 << 10;

#[test]
fn a_flood_fills_neither_memory_nor_disk() {
    let script = "head -c 300000000 /dev/zero | tr '\\0' x; grep VmHWM /proc/$PPID/status >&2";
    let mut scene = ProcessFixture::sh(LAUNCH, script);
    scene.spec.bytes_max = 10 << 20;
    let ended = scene.run();
    assert_eq!((&ended["how"], &ended["fault"]), (&json!({"exited": 0}), &Value::Null));
    let (seen, dropped) = (ended["stdout"][0].as_u64().unwrap(), ended["stdout"][1].as_u64().unwrap());
    assert_eq!(seen, 300_000_000);
    let log = scene.log("stdout");
    assert!(log.len() <= 10 << 20 && log.len() > (10 << 20) - 100, "{}", log.len());
    let (head, tail) = log.split_once(&format!("\n[runner: {dropped} bytes dropped here]\n")).unwrap();
    assert_eq!((head.len() + tail.len()) as u64 + dropped, seen);
    assert!(fs::metadata(scene.path("stream")).unwrap().len() <= 10 << 20);
    assert!(ended["grown_kb"].as_u64().unwrap() <= GROWTH_KB_MAX, "{ended}");
    let supervisor = scene.log("stderr");
    let supervisor: u64 = supervisor.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(supervisor <= GROWTH_KB_MAX, "{supervisor}");
}

#[test]
fn a_flood_of_short_lines_fills_no_memory_either() {
    let mut scene = ProcessFixture::sh(LAUNCH, "yes | head -c 20000000");
    scene.spec.bytes_max = 4 << 20;
    let ended = scene.run();
    assert!(ended["grown_kb"].as_u64().unwrap() <= GROWTH_KB_MAX, "{ended}");
    let stream = scene.log("stream");
    assert!(stream.len() <= 4 << 20);
    let lines: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let missing = lines.iter().find_map(|line| line["dropped"]["lines"].as_u64()).unwrap();
    assert_eq!(missing + lines.len() as u64 - 1, 10_000_000);
}

#[test]
fn a_character_on_any_cut_stays_readable() {
    for shift in 0..5 {
        let script =
            format!("printf '%{shift}s' ''; i=0; while [ $i -lt 400 ]; do printf '🦀é€'; i=$((i+1)); done");
        let mut scene = ProcessFixture::sh(LAUNCH, &script);
        scene.spec.bytes_max = 1_000;
        let ended = scene.run();
        let log = scene.log("stdout");
        let marker = format!("\n[runner: {} bytes dropped here]\n", ended["stdout"][1]);
        assert_eq!(log.matches(&marker).count(), 1, "{log}");
    }
}

#[test]
fn streams_go_apart_or_together_in_order() {
    let script = "i=0; while [ $i -lt 100 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let apart = ProcessFixture::sh(LAUNCH, script);
    let ended = apart.run();
    let expected = |word: &str| (0..100).map(|i| format!("{word} {i}\n")).collect::<String>();
    assert_eq!((apart.log("stdout"), apart.log("stderr")), (expected("out"), expected("err")));
    assert_eq!((&ended["stdout"], &ended["stderr"]), (&json!([690, 0]), &json!([690, 0])));
    let mut together = ProcessFixture::sh(LAUNCH, script);
    together.spec.is_together = true;
    let ended = together.run();
    assert_eq!(together.log("both"), (0..100).map(|i| format!("out {i}\nerr {i}\n")).collect::<String>());
    assert_eq!((&ended["stdout"], &ended["stderr"]), (&json!([1_380, 0]), &json!([0, 0])));
}

#[test]
fn the_stream_holds_every_line_with_its_time() {
    let scene =
        ProcessFixture::sh(LAUNCH, "echo '{\"type\": \"item\"}'; sleep 0.3; echo plain; printf '{\"half'");
    scene.run();
    let stream = scene.log("stream");
    let lines: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let raw: Vec<&Value> = lines.iter().map(|line| &line["raw"]).collect();
    assert_eq!(raw, [&json!({"type": "item"}), &json!("plain"), &json!("{\"half")]);
    let t: Vec<u64> = lines.iter().map(|line| line["t"].as_u64().unwrap()).collect();
    assert!(t.is_sorted() && t[1] >= 300, "{t:?}");
}

#[test]
fn output_can_be_followed_while_the_program_runs() {
    let scene = ProcessFixture::sh(LAUNCH, "echo '{\"early\": 1}'; sleep 1000");
    let mut runner = scene.start();
    wait_for("the first line", || {
        scene.has_written("stdout", "{\"early\": 1}\n") && scene.has_written("stream", "{\"early\": 1}}\n")
    });
    runner.ask("kill");
    assert_eq!(runner.ended()["how"], "stopped");
}

#[test]
fn a_long_prompt_reaches_every_kind_of_reader() {
    for size in [900_000, 5_000_000] {
        let scripts = [
            ("true", 0),
            ("sleep 0.3; wc -c", 0),
            ("head -c 1000000 /dev/zero; wc -c", 1_000_000),
            ("head -c 10 >/dev/null; exec <&-; head -c 1000000 /dev/zero", 1_000_000),
        ];
        for (script, noise) in scripts {
            let mut scene = ProcessFixture::sh(LAUNCH, script);
            let prompt = scene.path("prompt.md");
            fs::write(&prompt, vec![b'p'; size]).unwrap();
            scene.spec.input = Some(prompt);
            scene.spec.bytes_max = 4 << 20;
            let ended = scene.run();
            assert_eq!(ended["how"], json!({"exited": 0}), "{script}");
            let log = scene.log("stdout");
            assert_eq!(log.bytes().filter(|byte| *byte == 0).count(), noise, "{script}");
            if script.ends_with("wc -c") {
                assert_eq!(log.trim_matches('\0').trim(), size.to_string(), "{script}");
            }
        }
    }
}

#[test]
fn without_an_input_there_is_nothing_to_read() {
    let scene = ProcessFixture::sh(LAUNCH, "wc -c");
    scene.run();
    assert_eq!(scene.log("stdout").trim(), "0");
}

#[test]
fn nothing_is_written_through_what_was_planted() {
    let scene = ProcessFixture::sh(LAUNCH, "echo mine");
    let victim = scene.path("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, scene.path("stdout")).unwrap();
    fs::hard_link(&victim, scene.path("stderr")).unwrap();
    std::os::unix::net::UnixListener::bind(scene.path("stream")).unwrap();
    assert_eq!(scene.run()["how"], json!({"exited": 0}));
    assert_eq!((scene.log("stdout").as_str(), scene.log("victim").as_str()), ("mine\n", "precious"));
}
