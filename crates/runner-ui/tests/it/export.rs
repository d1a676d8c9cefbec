//! `runner-ui export`: a run as one file.

use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::run_builder::RUN;
use testkit::test_repo::TestRepo;

use crate::server::finished_run;

fn export(sandbox: &TestRepo, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    command.arg("-C").arg(sandbox.root()).arg("export").args(args).output().unwrap()
}

#[test]
fn run_is_exported_as_one_document() {
    let sandbox = finished_run();
    let document: Value = serde_json::from_slice(&export(&sandbox, &["json"]).stdout).unwrap();
    assert_eq!((&document["schema"], &document["omitted"]), (&json!("runner.export/1"), &json!([])));
    assert_eq!(
        (&document["snapshot"]["state"], &document["verify"]["result"]["verdict"]),
        (&json!("complete"), &json!("verified"))
    );
    assert!(document["verify"]["objects"].as_str().is_some_and(|objects| objects.starts_with("H4sI")));
    assert_eq!(document["iterations"]["iterations"].as_array().map(Vec::len), Some(4));
    assert_eq!(document["nodes"]["a"]["iterations"], json!([2, 3]));
    let second = &document["details"]["2"];
    assert_eq!(second["logs"]["guard"]["lines"], json!(["checking", "error: a is bad"]));
    assert_eq!(second["logs"]["guard"]["errors"]["hits"][0]["line"], 1);
    assert!(second["patches"].as_object().is_some_and(|patches| !patches.is_empty()));
    let named: Value = serde_json::from_slice(&export(&sandbox, &["json", RUN]).stdout).unwrap();
    assert_eq!(named["details"], document["details"]);
}

#[test]
fn exported_page_loads_nothing_and_has_no_markup_by_agents() {
    let sandbox = finished_run();
    let file = sandbox.outside().join("run.html");
    let output = export(&sandbox, &["html", "--out", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("(4 iterations, "), "{output:?}");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("default-src 'none'"));
    let loads = ["src=\"/", "href=\"/", "import(\"", "from\"."];
    assert!(loads.iter().all(|load| !page.contains(load)), "it loads nothing");
    let data = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)), "{data}");
    assert_eq!(page.matches("<script type=\"text/plain\" id=\"iteration-").count(), 4);
}

#[test]
fn errors_are_reported_and_a_file_in_the_work_tree_causes_a_warning() {
    let sandbox = finished_run();
    let unknown = export(&sandbox, &["json", "unknown"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no such run: `unknown`"), "{unknown:?}");
    let unwritable = export(&sandbox, &["html", "--out", "/no/such/folder/x.html"]);
    assert_eq!(unwritable.status.code(), Some(1));
    let inside = export(&sandbox, &["html", "--out", sandbox.path("run.html").to_str().unwrap()]);
    assert!(
        String::from_utf8_lossy(&inside.stderr).contains("must be clean before the next step"),
        "{inside:?}"
    );
}

#[test]
fn export_has_no_keys_of_committed_files() {
    let sandbox = finished_run();
    let token = format!("gh{}", "p_CANARY2a1B2c3D4e5F6g7H8i9J0k1L2m3N4");
    let log = format!(".runner/iterations/{RUN}/0002/guard.log");
    std::fs::write(sandbox.path(&log), format!("error: {token}\n")).unwrap();
    let document = export(&sandbox, &["json"]).stdout;
    let text = String::from_utf8(document).unwrap();
    assert!(text.contains("error: [redacted]") && !text.contains("CANARY"), "{text}");
}
