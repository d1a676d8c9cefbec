//! `[proof] sign`: a complete run has a signed tag that git accepts, and no key asks for anything at night.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;

fn key(repo: &TestRepo, passphrase: &str) -> PathBuf {
    let key = repo.outside().join("key");
    let created = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-C", "user@example.com", "-N", passphrase, "-f"])
        .arg(&key)
        .status();
    assert!(created.unwrap().success());
    key
}

/// A run that is signed with the key outside of its repository.
fn signed_run(passphrase: &str) -> TestRepo {
    let repo = TestRepo::empty(RUNNER);
    let key = key(&repo, passphrase);
    let table = format!("[proof]\nsign = \"ssh\"\nkey = \"{}\"\n", key.display());
    RunBuilder::new(RUNNER).agent("echo 1 > work; answer done").config_tables(&table).start_in(repo)
}

#[test]
fn a_complete_run_has_a_tag_that_git_verifies() {
    let repo = signed_run("");
    let ended = repo.runner(&["loop"]).ok().stdout;
    assert!(ended.contains("signed=\"tag runner-signed/demo with ssh:key\""), "{ended}");
    let public = fs::read_to_string(repo.outside().join("key.pub")).unwrap();
    let signers = repo.outside().join("signers");
    fs::write(&signers, format!("user@example.com {public}")).unwrap();
    let file = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    repo.git(&["-c", "gpg.format=ssh", "-c", &file, "verify-tag", "runner-signed/demo"]);
    let verified = repo.runner(&["verify"]).ok().stdout;
    assert!(verified.contains("signature=\"tag runner-signed/demo signs this commit\""), "{verified}");

    repo.runner(&["note", "more"]).ok();
    let verified = repo.runner(&["verify"]).ok().stdout;
    assert!(verified.contains("signs the earlier commit"), "{verified}");

    repo.git(&["reset", "-q", "--hard", "HEAD~2"]);
    let verified = repo.runner(&["verify"]).stdout;
    assert!(verified.contains("which is not in this history"), "a truncated history: {verified}");
}

#[test]
fn a_tag_whose_signature_was_replaced_is_reported() {
    let repo = signed_run("");
    repo.runner(&["loop"]).ok();
    let text = repo.git(&["cat-file", "tag", "runner-signed/demo"]);
    repo.write("forged", text.replace("is complete", "was complete") + "\n");
    let forged = repo.git(&["hash-object", "-t", "tag", "-w", "forged"]);
    repo.git(&["update-ref", "refs/tags/runner-signed/demo", &forged]);
    fs::remove_file(repo.path("forged")).unwrap();
    let verified = repo.runner(&["verify"]).ok().stdout;
    assert!(verified.contains("the signature does not fit"), "{verified}");
}

#[test]
fn a_key_that_needs_a_passphrase_is_refused_before_the_loop() {
    let repo = signed_run("secret words");
    let ran = repo.runner(&["loop"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be signed"), "{}", ran.stderr);
    assert_eq!(repo.outcomes(), [""; 0]);
}

#[test]
fn nothing_is_signed_by_default() {
    let repo = RunBuilder::new(RUNNER).agent("echo 1 > work; answer done").start();
    assert!(!repo.runner(&["loop"]).ok().stdout.contains("signed"));
    assert_eq!(repo.git(&["tag", "--list"]), "");
}

/// A gpg key without a passphrase in a folder of its own, and its fingerprint. None where gpg is not installed.
pub(crate) fn gpg_key(repo: &TestRepo) -> Option<GpgKey> {
    use std::os::unix::fs::PermissionsExt;
    let home = repo.outside().join("g");
    fs::create_dir_all(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let user = "User <user@example.com>";
    let args =
        ["--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key", user, "ed25519"];
    let made =
        Command::new("gpg").env("GNUPGHOME", &home).args(args).args(["sign", "never"]).output().ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(GpgKey { home })
}

pub(crate) struct GpgKey {
    pub(crate) home: PathBuf,
}

impl Drop for GpgKey {
    /// The agent that gpg starts would outlive the test.
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").env("GNUPGHOME", &self.home).args(["--kill", "all"]).status();
    }
}

#[test]
fn a_complete_run_is_signed_with_a_gpg_key() {
    let repo = TestRepo::empty(RUNNER);
    let key = gpg_key(&repo).expect("gpg is installed");
    let table = "[proof]\nsign = \"gpg\"\nkey = \"user@example.com\"\n";
    let repo =
        RunBuilder::new(RUNNER).agent("echo 1 > work; answer done").config_tables(table).start_in(repo);
    let ended =
        testkit::test_repo::run(repo.runner_command(&["loop"]).env("GNUPGHOME", &key.home)).ok().stdout;
    assert!(ended.contains("signed=\"tag runner-signed/demo with gpg"), "{ended}");
    let verify = testkit::test_repo::run(
        repo.command("git").env("GNUPGHOME", &key.home).args(["verify-tag", "runner-signed/demo"]),
    );
    verify.ok();
    let verified =
        testkit::test_repo::run(repo.runner_command(&["verify"]).env("GNUPGHOME", &key.home)).ok().stdout;
    assert!(verified.contains("signature=\"tag runner-signed/demo signs this commit\""), "{verified}");
}
