//! `runner attest`: statements that other tools can read, and signatures that `ssh-keygen` accepts.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;

fn passed() -> TestRepo {
    let agent = "case $RUNNER_ITER in 0001) split ;; *) echo $RUNNER_ITER > work.txt; answer done ;; esac";
    let repo = RunBuilder::new(RUNNER).agent(agent).start();
    repo.runner(&["loop"]).ok();
    repo
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_pass_and_the_run_have_a_statement() {
    let repo = passed();
    let statements = lines(&repo.runner(&["attest"]).ok().stdout);
    assert_eq!(statements.len(), 3);
    for (statement, node) in statements.iter().zip(["a", "b"]) {
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://in-toto.io/attestation/test-result/v0.1");
        assert_eq!(statement["predicate"]["result"], "PASSED");
        assert_eq!(statement["predicate"]["passedTests"], json!([node]));
        let configuration = statement["predicate"]["configuration"].as_array().unwrap();
        assert_eq!(configuration.len(), 1, "the guard alone: {statement}");
        assert_eq!(configuration[0]["annotations"]["room"], "in-place");
    }
    let summary = statements.last().unwrap();
    assert_eq!(summary["predicate"]["verificationResult"], "PASSED");
    let tip = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(summary["subject"][0]["digest"]["gitCommit"], tip.trim());
    assert_eq!(lines(&repo.runner(&["attest"]).ok().stdout), statements, "the same run gives the same bytes");
}

/// Checks, held-out checks and the review of a pass, with the digests that its commit records.
#[test]
#[cfg(target_os = "linux")]
fn a_statement_has_the_checks_and_the_review_of_its_pass() {
    let repo = TestRepo::empty(RUNNER);
    let heldout = repo.outside().join("heldout/root");
    fs::create_dir_all(&heldout).unwrap();
    let check = |name: &str| format!("[[check]]\nname = \"{name}\"\ncommand = [\"test\", \"-e\", \"out\"]\n");
    fs::write(heldout.join("checks.toml"), check("hidden")).unwrap();
    let tables = format!(
        "[checks]\nheldout = \"{}\"\n[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n",
        repo.outside().join("heldout").display()
    );
    let repo = RunBuilder::new(RUNNER)
        .agent("echo work > out; answer done")
        .file(".runner/nodes/root/checks.toml", check("exists"))
        .file("reviewer.sh", "printf '{\"verdict\": \"accept\", \"reasons\": []}' > \"$RUNNER_OUTPUT\"\n")
        .guard_keys("room = \"require\"")
        .config_tables(&tables)
        .start_in(repo);
    repo.runner(&["loop"]).ok();
    let recorded = |key: &str| {
        let format = format!("--format=%(trailers:key={key},valueonly,separator=)");
        let value = repo.git(&["log", "-1", &format, "--grep=iter 0001 ", "HEAD"]);
        json!({ "sha256": value.rsplit(' ').next().unwrap() })
    };
    let statement = lines(&repo.runner(&["attest"]).ok().stdout).remove(0);
    let predicate = &statement["predicate"];
    assert_eq!(predicate["passedTests"], json!(["root", "root/exists", "root/hidden"]));
    let configuration = predicate["configuration"].as_array().unwrap();
    assert_eq!(configuration[0]["annotations"]["room"], "bubblewrap ignored=room");
    assert_eq!(configuration[0]["annotations"]["exit"], "0");
    assert_eq!(
        configuration[1..],
        [
            json!({ "name": "root/exists", "digest": recorded("Runner-Check"),
                "annotations": { "kind": "check", "red": "failed", "exit": "0" } }),
            json!({ "name": "root/hidden", "digest": recorded("Runner-Heldout"),
                "annotations": { "kind": "held-out check", "red": "failed", "result": "pass" } }),
            json!({ "name": "review", "digest": recorded("Runner-Review"),
                "annotations": { "kind": "review", "result": "accepted", "round": { "nth": 1, "of": 2 } } }),
        ]
    );
    let summary = lines(&repo.runner(&["attest"]).ok().stdout).pop().unwrap();
    assert_eq!(summary["predicate"]["annotations"]["acceptance"]["proven"], 1);
}

#[test]
fn a_forged_run_is_not_attested_as_verified() {
    let repo = passed();
    repo.git(&[
        "commit",
        "-q",
        "--amend",
        "-m",
        "chore(loop): run demo iter 0003 node b status=done guard=pass",
    ]);
    let output = repo.runner(&["attest"]);
    assert_eq!(output.code, Some(1));
    let summary = lines(&output.stdout).pop().unwrap();
    assert_eq!(summary["predicate"]["verificationResult"], "FAILED");
}

/// Decodes base64 with the system's own program.
fn decoded(text: &Value) -> Vec<u8> {
    use std::io::Write;
    let mut child =
        Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_str().unwrap().as_bytes()).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn ssh_signatures_are_accepted_by_ssh_keygen_and_only_for_their_payload() {
    let repo = passed();
    let key = repo.outside().join("key");
    let created = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "user@example.com", "-f"])
        .arg(&key)
        .status();
    assert!(created.unwrap().success());
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let signers = repo.outside().join("signers");
    fs::write(&signers, format!("user@example.com {public}")).unwrap();
    let output = repo.runner(&["attest", "--sign", "ssh", "--key", key.to_str().unwrap()]).ok();
    let envelopes = lines(&output.stdout);
    assert_eq!(envelopes.len(), 3);
    for envelope in &envelopes {
        let payload = decoded(&envelope["payload"]);
        let signature = repo.outside().join("payload.sig");
        fs::write(&signature, decoded(&envelope["signatures"][0]["sig"])).unwrap();
        let verify = |payload: &[u8]| {
            use std::io::Write;
            let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len());
            let mut child = Command::new("ssh-keygen")
                .args(["-q", "-Y", "verify", "-I", "user@example.com", "-n", "runner", "-f"])
                .arg(&signers)
                .arg("-s")
                .arg(&signature)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&[head.as_bytes(), payload].concat()).unwrap();
            child.wait().unwrap().success()
        };
        assert!(verify(&payload));
        assert!(!verify(&[&payload[..], b" "].concat()));
    }
    let refused = repo.runner(&["attest", "--sign", "ssh", "--key", "/nowhere"]).refused(2);
    assert!(refused.contains("could not sign"), "{refused}");
}

#[test]
fn gpg_signatures_are_accepted_by_gpg_and_only_for_their_payload() {
    let repo = passed();
    let key = super::signing::gpg_key(&repo).expect("gpg is installed");
    let mut command = repo.runner_command(&["attest", "--sign", "gpg", "--key", "user@example.com"]);
    let output = testkit::test_repo::run(command.env("GNUPGHOME", &key.home)).ok();
    let envelopes = lines(&output.stdout);
    assert_eq!(envelopes.len(), 3);
    for envelope in &envelopes {
        let payload = decoded(&envelope["payload"]);
        let signature = repo.outside().join("payload.sig");
        fs::write(&signature, decoded(&envelope["signatures"][0]["sig"])).unwrap();
        let verify = |payload: &[u8]| {
            let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len());
            let signed = repo.outside().join("payload");
            fs::write(&signed, [head.as_bytes(), payload].concat()).unwrap();
            let mut gpg = Command::new("gpg");
            gpg.env("GNUPGHOME", &key.home).arg("--verify").arg(&signature).arg(&signed);
            gpg.stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(verify(&payload));
        assert!(!verify(&[&payload[..], b" "].concat()));
    }
    let mut command = repo.runner_command(&["attest", "--sign", "gpg", "--key", "nobody@example.com"]);
    let refused = testkit::test_repo::run(command.env("GNUPGHOME", &key.home)).refused(2);
    assert!(refused.contains("could not sign"), "{refused}");
}
