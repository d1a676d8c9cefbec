//! The bench itself: its rows, its adapters, and the tables of two loop runners whose behaviour is known. Needs bubblewrap.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "here a fault is a failed test"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use conformance_bench::adapter::Adapter;
use conformance_bench::report::{ToolReport, page};
use conformance_bench::row::rows;
use runner_core::conformance_cases::SCRIPTED_CASES;
use serde_json::Value;
use testkit::generated::assert_generated;

const BENCH: &str = env!("CARGO_BIN_EXE_conformance-bench");

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn believer() -> PathBuf {
    here().join("tests/adapters/believer.toml")
}

fn public_adapters() -> PathBuf {
    here().join("../../adapters/conformance")
}

/// Runs the bench with the folder of the built programs on PATH.
fn bench(args: &[&str]) -> Output {
    let programs = Path::new(BENCH).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    Command::new(BENCH).args(args).env("PATH", path).output().expect("the bench")
}

/// The table of a tool: each row with its verdict and what was found, and the bench's exit code.
fn table(adapter: &Path, args: &[&str]) -> (Vec<(String, String, String)>, Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let fixed = ["run", adapter.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let output = bench(&[&fixed, args].concat());
    let text = std::fs::read_to_string(&json).unwrap_or_else(|_| {
        panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    let report: Value = serde_json::from_str(&text).unwrap();
    let word = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = report["rows"].as_array().unwrap();
    let rows = rows.iter().map(|row| (word(row, "row"), word(row, "verdict"), word(row, "found"))).collect();
    (rows, output.status.code(), report)
}

#[test]
fn rows_are_the_sessions_of_runner_conformance() {
    let rows = rows().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, SCRIPTED_CASES.map(|case| case.name));
}

#[test]
fn every_public_adapter_covers_every_row() {
    let rows = rows().unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(public_adapters()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let adapter = Adapter::read(&path).unwrap();
            adapter.check(&rows).unwrap();
            names.push(adapter.name);
        }
    }
    names.sort();
    assert_eq!(names, ["ralph-starter", "ralphy", "runner"]);
}

/// The tools of the page, in its order.
const PUBLISHED: [&str; 3] = ["runner", "ralphy", "ralph-starter"];

fn published_reports() -> Vec<ToolReport> {
    let file = |name: &str| public_adapters().join(format!("results/{name}.json"));
    PUBLISHED.iter().map(|name| ToolReport::read(&file(name)).unwrap()).collect()
}

#[test]
fn page_of_results_is_generated() {
    assert_generated("docs/reference/conformance.md", page(&published_reports()).as_bytes());
}

#[test]
fn published_results_have_every_row_and_the_settings_of_the_adapter() {
    let rows = rows().unwrap();
    for report in published_reports() {
        let adapter = Adapter::read(&public_adapters().join(format!("{}.toml", report.tool))).unwrap();
        assert_eq!(
            report.settings,
            adapter.settings.trim(),
            "{}: run 'just conformance-others'",
            report.tool
        );
        let of_report: Vec<_> = report.rows.iter().map(|row| (&row.row, &row.what)).collect();
        let of_bench: Vec<_> = rows.iter().map(|row| (&row.name, &row.what)).collect();
        assert_eq!(of_report, of_bench, "{}: run 'just conformance-others'", report.tool);
    }
}

#[test]
fn adapter_must_have_an_action_or_a_reason_for_each_row() {
    let rows = rows().unwrap();
    let mut adapter = Adapter::read(&believer()).unwrap();
    adapter.not_applicable.remove("note-forger");
    let error = adapter.check(&rows).unwrap_err().to_string();
    assert!(error.contains("row `note-forger` needs `forge_notes`"), "{error}");
    let mut adapter = Adapter::read(&believer()).unwrap();
    adapter.not_applicable.insert("note-forgr".to_owned(), "a typing error".to_owned());
    let error = adapter.check(&rows).unwrap_err().to_string();
    assert!(error.ends_with("there is no row `note-forgr`"), "{error}");
}

#[test]
fn loop_that_believes_its_agent_fails_where_the_agent_lies() {
    // The sandbox hides `/tmp`, and adapters may be there.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    for name in ["believer.toml", "believer.sh"] {
        std::fs::copy(believer().with_file_name(name), folder.path().join(name)).unwrap();
    }
    let (rows, code, report) = table(&folder.path().join("believer.toml"), &["--grace-secs", "2"]);
    assert_eq!(code, Some(1));
    let of = |verdict: &str| -> Vec<&str> {
        rows.iter().filter(|row| row.1 == verdict).map(|row| row.0.as_str()).collect()
    };
    let not_applicable = ["splitter", "lookup-table", "check-editor", "note-forger"];
    assert_eq!(
        of("not applicable"),
        [&not_applicable[..1], &["splitter-for-ever"], &not_applicable[1..]].concat()
    );
    assert_eq!(
        of("fail"),
        [
            "liar",
            "self-marker",
            "test-deleter",
            "guard-rewriter",
            "self-ignorer",
            "home-planter",
            "rewriter",
            "committer",
            "eraser",
            "tree-breaker",
            "hanger",
            "runaway",
            "leaver"
        ]
    );
    let found = |name: &str| rows.iter().find(|row| row.0 == name).unwrap().2.as_str();
    assert_eq!(found("liar"), "reports complete, but the work is not done");
    assert_eq!(found("committer"), "reports complete, but its branch does not have the work");
    assert_eq!(found("hanger"), "still running after 7 s");
    assert_eq!(found("leaver"), "2 processes are still running after it ended");
    assert_eq!(found("quitter"), "reports open (exit 1)");
    let honest = &report["rows"][0]["facts"];
    assert_eq!(honest["sessions"], 1, "{honest}");
    assert_eq!(honest["commits"], 1, "{honest}");
    assert_eq!(report["version"], "1.0.0");
}

/// The rows of `runner` in every test run. All of them take minutes, and some are about time: `just conformance-others`.
const RUNNER_ROWS: [&str; 8] =
    ["honest", "liar", "self-marker", "test-deleter", "guard-rewriter", "committer", "eraser", "leaver"];

#[test]
fn runner_conforms() {
    let programs = Path::new(BENCH).parent().unwrap();
    assert!(programs.join("runner").is_file(), "build it: cargo build --workspace --bins");
    let folder = env!("CARGO_TARGET_TMPDIR");
    let folder = if folder.starts_with("/tmp") { "/var/tmp" } else { folder };
    let adapter = public_adapters().join("runner.toml");
    let mut args = vec!["--jobs", "2", "--folder", folder];
    args.extend(RUNNER_ROWS.iter().flat_map(|row| ["--row", row]));
    let (rows, code, _) = table(&adapter, &args);
    let bad: Vec<_> = rows.iter().filter(|row| row.1 != "ok").collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(rows.len(), RUNNER_ROWS.len());
    assert_eq!(code, Some(0));
}

#[test]
fn sandbox_has_no_network_and_no_variable_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let adapter = folder.path().join("probe.toml");
    let believer = std::fs::read_to_string(believer()).unwrap();
    // The version script runs in the same sandbox as the tool.
    let probe =
        "grep -c : /proc/net/dev; env | grep -c OF_THE_USER || true; touch /etc/conformance 2>&1 || true";
    std::fs::write(&adapter, believer.replace("echo 1.0.0", &format!("{{ {probe}; }} | tr '\\\\n' ' '")))
        .unwrap();
    let json = folder.path().join("report.json");
    let mut command = Command::new(BENCH);
    command.args(["run", adapter.to_str().unwrap(), "--row", "quitter", "--json", json.to_str().unwrap()]);
    let output = command.env("OF_THE_USER", "secret").output().unwrap();
    let text = std::fs::read_to_string(&json)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let report: Value = serde_json::from_str(&text).unwrap();
    let version = report["version"].as_str().unwrap();
    // One interface, no variable, no write.
    assert!(version.starts_with("1 0 "), "{version}");
    assert!(version.contains("Read-only file system"), "{version}");
}
