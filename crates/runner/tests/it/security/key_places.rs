//! Keys that a session gets from files and variables of any name, and keys in unusual places of what it leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const SECRET: &str = "CANARY1wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzz";
const CANARY: &str = "CANARY";

/// Everything that is in commits: names, links, files and messages.
fn history(repo: &TestRepo) -> String {
    let objects = repo.git(&["rev-list", "--all", "--objects"]);
    let mut text = objects.clone();
    for id in objects.lines().filter_map(|line| line.split(' ').next()) {
        text.push_str(&repo.git(&["cat-file", "-p", id]));
    }
    text
}

/// A preset's program that prints its key and writes it down.
const GEMINI: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo 0.61.0; exit; fi
cat > /dev/null
echo '{"type":"init","session_id":"s","model":"m"}'
echo '{"type":"message","role":"assistant","content":"my key is '$GEMINI_API_KEY'"}'
echo "k=$GEMINI_API_KEY" > conf.txt
printf '{"status":"done","summary":"used %s"}' "$GEMINI_API_KEY" > "$RUNNER_OUTPUT"
echo '{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1}}'
"#;

#[test]
fn the_key_in_a_login_file_is_known() {
    let repo = TestRepo::empty_in(RUNNER, tempfile::tempdir().unwrap());
    let folder = repo.outside().join("home/.gemini");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".env"), "GEMINI_API_KEY=CANARY-gateway-key-1wJalrXUtn\n").unwrap();
    let program = repo.outside().join("gemini");
    fs::write(&program, GEMINI).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let keys = format!("kind = \"command\"\npreset = \"gemini\"\nprogram = \"{}\"", program.display());
    let repo = RunBuilder::new(RUNNER).executor(&keys).executor_keys("").guard("true").start_in(repo);
    let step = repo.runner(&["step"]).ok();
    assert!(step.stdout.contains("it contains a key of your environment"), "{}", step.stdout);
    let log = repo.iteration_file(1, "executor.log");
    assert!(log.contains("my key is [redacted]") && !log.contains(CANARY), "{log}");
    assert!(repo.git(&["log", "-1", "--format=%B"]).contains("used [redacted]"));
    assert!(!history(&repo).contains(CANARY));
    assert_sound(&repo);
}

#[test]
fn a_key_in_a_name_a_link_a_large_file_or_utf_16_is_in_no_commit() {
    let agent = r#"
        echo x > "name-$DEPLOY_SECRET.txt"
        ln -s "$DEPLOY_SECRET" link
        head -c 9000000 /dev/zero | tr '\0' 'a' > big.txt; echo "$DEPLOY_SECRET" >> big.txt
        printf 'key=%s' "$DEPLOY_SECRET" | sed 's/./&\n/g' | tr '\n' '\0' > wide.txt
        printf '%s' "user:$DEPLOY_SECRET" | base64 -w0; echo
        echo kept > kept.txt
        answer done
    "#;
    let repo = RunBuilder::new(RUNNER).agent(agent).guard("test -e kept.txt").start();
    let mut command = repo.runner_command(&["step"]);
    let step = run(command.env("DEPLOY_SECRET", SECRET)).ok();
    assert_eq!(repo.outcomes(), ["passed"], "{}", step.stdout);
    let files = repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(files.lines().any(|name| name == "kept.txt"), "{files}");
    for name in ["link", "big.txt", "wide.txt"] {
        assert!(!files.lines().any(|file| file == name), "{name}: {files}");
    }
    let history = history(&repo).replace('\0', "");
    assert!(!history.contains(CANARY), "a key is in a commit");
    let log = repo.iteration_file(1, "executor.log");
    assert!(log.contains("[redacted]") && !log.contains("bHJYVXRuRkVNS"), "{log}");
    let records = [step.stdout, repo.iteration_file(1, "meta.json"), repo.iteration_file(1, "events.jsonl")];
    for record in &records {
        assert!(record.contains("name-[redacted].txt") && !record.contains(CANARY), "{record}");
    }
    let meta: Value = serde_json::from_str(&records[1]).unwrap();
    let notices = meta["file_notices"].as_array().unwrap();
    let named = notices.iter().find(|notice| notice["path"] == "name-[redacted].txt").unwrap();
    run(repo.command("sh").args(["-c", named["restore"].as_str().unwrap()])).ok();
    assert!(repo.git(&["status", "--porcelain"]).contains("-name-[redacted].txt"), "the file is back");
    repo.git(&["clean", "-q", "-f"]);
    assert_sound(&repo);
}
