//! A run as one file.

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
fn a_whole_run_is_one_document() {
    let sandbox = finished_run();
    let whole: Value = serde_json::from_slice(&export(&sandbox, &["json"]).stdout).unwrap();
    assert_eq!((&whole["schema"], &whole["left_out"]), (&json!("runner.export/1"), &json!([])));
    assert_eq!(
        (&whole["snapshot"]["state"], &whole["verdict"]["verdict"]),
        (&json!("complete"), &json!("held"))
    );
    assert_eq!(whole["iterations"]["iterations"].as_array().map(Vec::len), Some(4));
    assert_eq!(whole["nodes"]["a"]["iterations"], json!([2, 3]));
    let second = &whole["details"]["2"];
    assert_eq!(second["logs"]["guard"]["lines"], json!(["checking", "error: a is bad"]));
    assert_eq!(second["logs"]["guard"]["errors"]["hits"][0]["line"], 1);
    assert!(second["patches"].as_object().is_some_and(|patches| !patches.is_empty()));
    let named: Value = serde_json::from_slice(&export(&sandbox, &["json", RUN]).stdout).unwrap();
    assert_eq!(named["details"], whole["details"]);
}

#[test]
fn the_page_in_a_file_needs_nothing_else_and_holds_no_markup_of_an_agent() {
    let sandbox = finished_run();
    let place = sandbox.outside().join("run.html");
    let told = export(&sandbox, &["html", "--out", place.to_str().unwrap()]);
    assert!(told.status.success(), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stderr).contains("(4 iterations, "), "{told:?}");
    let page = std::fs::read_to_string(&place).unwrap();
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("/assets/"), "it asks for nothing");
    let data = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains('<'));
    let whole: Value = serde_json::from_str(data).unwrap();
    assert_eq!(whole["snapshot"]["run"]["id"], RUN);
}

#[test]
fn what_cannot_be_exported_is_told_and_a_file_in_the_work_tree_is_warned_of() {
    let sandbox = finished_run();
    let unknown = export(&sandbox, &["json", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("there is no run `nobody` here"),
        "{unknown:?}"
    );
    let nowhere = export(&sandbox, &["html", "--out", "/no/such/folder/x.html"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let inside = export(&sandbox, &["html", "--out", sandbox.path("run.html").to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&inside.stderr).contains("a step needs a clean one"), "{inside:?}");
}
