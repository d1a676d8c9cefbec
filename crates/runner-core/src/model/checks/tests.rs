//! Decoding of checks.toml, and the files that it names.

use super::*;

const EXAMPLE: &str = r#"[[check]]
name = "parses-nested"
command = ["cargo", "test", "--test", "nested"]
covers = [1, 3]
files = { "tests/nested.rs" = "nested.rs" }
timeout_secs = 60
red = "any"
junit = "target/junit.xml"

[[check]]
name = "runs"
command = ["./run"]
"#;

fn problems(text: &str) -> Vec<String> {
    decode(text.as_bytes()).map_or_else(
        |problems| problems.iter().map(ToString::to_string).collect(),
        |checks| panic!("valid: {checks:?}"),
    )
}

#[test]
fn every_key_is_read_and_has_its_default() {
    let checks = decode(EXAMPLE.as_bytes()).unwrap();
    let [first, second] = checks.as_slice() else { panic!("{checks:?}") };
    assert_eq!((first.name.as_str(), first.command.program()), ("parses-nested", "cargo"));
    assert_eq!((first.timeout_secs.get(), first.red), (60, RedRule::Any));
    assert_eq!([1, 2, 3].map(|point| first.decides(point)), [true, false, true]);
    assert_eq!(first.junit.as_ref().map(CheckPath::as_str), Some("target/junit.xml"));
    assert_eq!((second.timeout_secs.get(), second.red), (600, RedRule::Required));
    assert!(second.decides(1) && second.decides(7), "a check covers every point by default");
}

#[test]
fn every_problem_is_reported_with_its_line() {
    let text = "[[check]]\nname = \"a b\"\ncommand = []\n\n[[check]]\nname = \"x\"\ncommand = [\"y\"]\ncover = [1]\n\
                covers = []\nred = \"maybe\"\n\n[[check]]\nname = \"x\"\n";
    assert_eq!(
        problems(text),
        [
            "line 2: `check.name` is invalid: expected a name of letters, digits, `.`, `_` and `-`, at most 64",
            "line 3: `check.command` is invalid: expected a program and its arguments",
            "line 8: `check.cover` is not a known key; did you mean `covers`?",
            "line 9: `check.covers` is empty: leave it out to cover every acceptance criterion",
            "line 10: `check.red` is invalid: unknown variant `maybe`, expected `required` or `any`",
            "line 12: `check.command` is missing",
            "line 13: `check.name` is `x` again: names must be unique in the file",
        ]
    );
    assert_eq!(problems(""), ["line 1: `check` is missing: add at least one [[check]]"]);
}

#[test]
fn a_destination_is_a_file_in_the_users_part_of_the_repository() {
    for good in ["tests/a.rs", "a", ".github/x.yml", "a/.runner/x", ".runnerx"] {
        assert!(CheckPath::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/",
        "./a",
        ".runner/x",
        ".git/hooks/x",
        "a/.GIT/x",
        "a\\b",
        "a\n",
    ] {
        assert!(CheckPath::new(bad).is_err(), "{bad:?}");
    }
    for bad in [
        "",
        "a/b",
        ".hidden",
        "checks.toml",
        "tools.json",
        "context.md",
        "artifacts",
        "a.tmp",
        "a.bak",
        "a\nb",
    ] {
        assert!(CheckFileName::new(bad).is_err(), "{bad:?}");
    }
    let shared = "[[check]]\nname = \"a\"\ncommand = [\"x\"]\nfiles = { \"t\" = \"1\" }\n\
                  [[check]]\nname = \"b\"\ncommand = [\"x\"]\nfiles = { \"t\" = \"2\" }\n";
    assert_eq!(
        problems(shared),
        ["line 8: `check.files` has `t` again: two checks cannot share a destination"]
    );
}

#[test]
fn the_digest_depends_on_every_byte_of_checks_and_files() {
    let digest = |toml: &str, file: &[u8]| {
        TaskChecks::read(toml.as_bytes(), |_| Some(Sha256::of(file))).unwrap().digest
    };
    let original = digest(EXAMPLE, b"x");
    assert_eq!(digest(EXAMPLE, b"x"), original);
    assert_ne!(digest(EXAMPLE, b"y"), original);
    assert_ne!(digest(&EXAMPLE.replace("60", "61"), b"x"), original);
}

#[test]
fn missing_files_and_points_are_faults() {
    let faults = TaskChecks::read(EXAMPLE.as_bytes(), |_| None).unwrap_err();
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["check `parses-nested`: the file `nested.rs` is not beside checks.toml"]);
    let checks = TaskChecks::read(EXAMPLE.as_bytes(), |_| Some(Sha256::of(b""))).unwrap();
    assert_eq!(checks.point_faults(3), []);
    let texts: Vec<String> = checks.point_faults(2).iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["check `parses-nested`: `covers` has 3, but the task has 2 acceptance criteria"]);
}

#[test]
fn frozen_files_are_checks_toml_and_what_it_names() {
    let root = |id: &NodeId| *id == NodeId::root();
    let frozen =
        |path: &str| frozen_node(path.as_bytes(), root, |_| Some(EXAMPLE.as_bytes().to_vec())).is_some();
    assert!(frozen(".runner/nodes/root/checks.toml"));
    assert!(frozen(".runner/nodes/root/nested.rs"));
    for free in [
        ".runner/nodes/root/context.md",
        ".runner/nodes/new/checks.toml",
        ".runner/nodes/root/artifacts/nested.rs",
    ] {
        assert!(!frozen(free), "{free}");
    }
    assert_eq!(frozen_node(b".runner/nodes/root/nested.rs", root, |_| None), None);
}

#[test]
fn a_record_is_parsed_as_it_was_written() {
    let digest = Sha256::of(b"x");
    let name = CheckName::new("a").unwrap();
    let exits = [
        None,
        Some(CheckExit::Code(0)),
        Some(CheckExit::Signal(9)),
        Some(CheckExit::TimedOut),
        Some(CheckExit::NotStarted),
        Some(CheckExit::NoTests),
        Some(CheckExit::TestsFailed),
    ];
    for exit in exits {
        for red in RedKind::ALL {
            let record = CheckRecord { name: name.clone(), red, exit, digest };
            assert_eq!(CheckRecord::parse(&record.to_string()), Some(record));
        }
    }
    for wrong in
        ["", "a failed 0", "a failed 00 x", &format!("a red 0 {digest}"), &format!("a failed 0 {digest} x")]
    {
        assert_eq!(CheckRecord::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_written_check_is_decoded_as_it_was() {
    let checks = decode(EXAMPLE.as_bytes()).unwrap();
    let written = checks.iter().fold(String::new(), |toml, check| with_check(&toml, check));
    assert_eq!(decode(written.as_bytes()), Ok(checks.clone()));
    let [first, second] = checks.as_slice() else { panic!("{checks:?}") };
    let rest = without_check(written.as_bytes(), &first.name).unwrap();
    assert_eq!(decode(rest.as_bytes()), Ok(vec![second.clone()]));
    assert_eq!(without_check(rest.as_bytes(), &first.name), None);
    assert_eq!(without_check(rest.as_bytes(), &second.name), Some(String::new()));
}
