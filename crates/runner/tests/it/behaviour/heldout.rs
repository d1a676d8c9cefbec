//! Held-out checks: in a folder that no session and no guard can read. Agents learn the names of those that fail.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Mended, Message, Trailer};
use crate::security::forged_runs::{Forgery, assert_found};

/// A text that only held-out checks contain.
const CANARY: &str = "heldout-canary-7c1f";
const STATE: &str = ".runner/state/run_state.json";

/// A repository with a folder beside it that has held-out checks for these tasks.
fn with_folder(tasks: &[&str]) -> TestRepo {
    let repo = TestRepo::empty(RUNNER);
    for task in tasks {
        write_check(&repo, task, "test \"$(cat out 2>/dev/null)\" = hello");
    }
    repo
}

fn write_check(repo: &TestRepo, task: &str, script: &str) {
    let folder = repo.outside().join("heldout").join(task);
    fs::create_dir_all(&folder).unwrap();
    let toml = format!(
        "[[check]]\nname = \"hidden\"\ncommand = [\"sh\", \"t/{CANARY}.sh\"]\n\
         files = {{ \"t/{CANARY}.sh\" = \"hidden.sh\" }}\n"
    );
    fs::write(folder.join("checks.toml"), toml).unwrap();
    fs::write(folder.join("hidden.sh"), format!("echo {CANARY}\n{script}\n")).unwrap();
}

fn table(repo: &TestRepo) -> String {
    format!("[checks]\nheldout = \"{}\"\n", repo.outside().join("heldout").display())
}

fn start(repo: TestRepo, builder: &RunBuilder) -> TestRepo {
    let table = table(&repo);
    builder.clone().config_tables(&table).guard_keys("room = \"require\"\nfinal_check = true").start_in(repo)
}

/// The trailers of a commit, without digests.
fn trailers(repo: &TestRepo, revision: &str, key: &str) -> Vec<String> {
    let format = format!("--format=%(trailers:key={key},valueonly)");
    let shown = repo.git(&["log", "-1", &format, revision]);
    let word = |line: &str| line.split(' ').filter(|word| word.len() != 64).collect::<Vec<_>>().join(" ");
    shown.lines().filter(|line| !line.is_empty()).map(word).collect()
}

fn commit_of(repo: &TestRepo, iter: u32) -> String {
    repo.git(&["log", "-1", "--format=%H", &format!("--grep=iter {iter:04} "), "HEAD"])
}

/// Whether a text is in a file at or below a folder.
fn contains(folder: &Path, text: &str) -> Option<String> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if let Some(found) = contains(&path, text) {
                return Some(found);
            }
        } else if let Ok(bytes) = fs::read(&path)
            && (bytes.windows(text.len()).any(|part| part == text.as_bytes())
                || path.display().to_string().contains(text))
        {
            return Some(path.display().to_string());
        }
    }
    None
}

/// Nothing of the held-out checks is in the repository: no file, no object, no name of an object.
fn assert_secret(repo: &TestRepo) {
    assert_eq!(contains(&repo.path("."), CANARY), None);
    let objects = repo.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
    for line in objects.lines() {
        let Some((object, kind)) = line.split_once(' ') else { continue };
        let content = repo.git(&["cat-file", if kind == "tree" { "-p" } else { kind }, object]);
        assert!(!content.contains(CANARY), "{line}: {content}");
    }
    assert!(!repo.path(".git/runner/heldout-room").exists(), "the room is removed");
}

#[test]
fn a_task_passes_when_its_held_out_check_turns_from_red_to_green() {
    let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo hello > out; answer done"#;
    let repo = start(with_folder(&["root"]), &RunBuilder::new(RUNNER).agent(agent));
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["checks_failed", "passed"]);
    assert_eq!(trailers(&repo, &commit_of(&repo, 1), "Runner-Heldout"), ["root/hidden failed fail"]);
    assert_eq!(trailers(&repo, &commit_of(&repo, 2), "Runner-Heldout"), ["root/hidden failed pass"]);
    assert_eq!(trailers(&repo, "HEAD", "Runner-Recheck"), ["root/hidden 0 heldout"], "the final check");
    let prompt = repo.iteration_file(2, "prompt.md");
    assert!(prompt.contains("Held-out check `hidden` failed."), "{prompt}");
    let listed = repo.runner(&["checks"]).ok().stdout;
    assert!(listed.contains("heldout=hidden task=root state=green red=failed covers=all"), "{listed}");
    for command in ["status", "verify", "checks"] {
        let shown = repo.runner(&[command]).ok().stdout;
        assert!(shown.contains("acceptance=\"1 of 1 points proven\""), "{command}: {shown}");
    }
    let log = repo.outside().join("heldout/.logs/demo/0002-root-hidden.log");
    assert_eq!(fs::read_to_string(log).unwrap(), format!("{CANARY}\n"), "the user can read it");
    assert_secret(&repo);
    assert_sound(&repo);
}

/// A reviewer learns how held-out checks ended, and not what they test.
#[test]
fn a_review_has_the_results_of_held_out_checks() {
    let reviewer = "printf '{\"verdict\": \"accept\", \"reasons\": []}' > \"$RUNNER_OUTPUT\"\n";
    let repo = with_folder(&["root"]);
    let review = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n";
    let tables = format!("{}{review}", table(&repo));
    let repo = RunBuilder::new(RUNNER)
        .agent("echo hello > out; answer done")
        .file("reviewer.sh", reviewer)
        .config_tables(&tables)
        .guard_keys("room = \"require\"")
        .start_in(repo);
    repo.runner(&["loop"]).ok();
    let brief = repo.iteration_file(1, "review.prompt.md");
    assert!(brief.contains("held-out check `hidden`: failed before the work, pass after it\n"), "{brief}");
    assert!(!brief.contains("no checks of its own") && !brief.contains(CANARY), "{brief}");
    assert_sound(&repo);
}

/// The session, the guard and a check try to read the folder; what they find is in the logs.
#[test]
fn neither_a_session_nor_a_guard_can_read_held_out_checks() {
    for keys in ["", "sandbox = \"off\""] {
        let repo = with_folder(&["root"]);
        let folder = repo.outside().join("heldout").display().to_string();
        let look = format!(
            "for place in {folder} \"$PWD/.git/runner\" /proc/1/root{folder} /proc/self/cwd/../heldout; do \
             grep -r -s -e 'heldout-canary-[0-9]' \"$place\" && echo FOUND; find \"$place\" -name '*.sh' 2>/dev/null | grep heldout; \
             done"
        );
        let check = format!(
            "[[check]]\nname = \"looks\"\ncommand = [\"sh\", \"-c\", '''{look}; exit 1''']\nred = \"any\"\n"
        );
        let agent = format!("{{ {look}; }} > seen 2>&1; answer done");
        let builder = RunBuilder::new(RUNNER)
            .executor_keys(keys)
            .agent(&agent)
            .guard(&format!("{look}; exit 1"))
            .file(".runner/nodes/root/checks.toml", check.replace("exit 1'''", "true'''"))
            .keys("max_attempts_default = 1");
        let repo = start(repo, &builder);
        // The folder's check is green at once, so that the guard runs.
        write_check(&repo, "root", "true");
        repo.runner(&["start"]).ok();
        assert_eq!(repo.runner(&["loop"]).code, Some(3), "{keys}");
        assert_eq!(repo.outcomes(), ["guard_failed"], "{keys}");
        assert_eq!(repo.read("seen"), "", "{keys}: the session");
        for log in ["guard.log", "check-looks.log", "check-looks.red.log"] {
            assert_eq!(repo.iteration_file(1, log), "", "{keys}: {log}");
        }
        assert_secret(&repo);
    }
}

/// Code of the candidate copies everything that it sees while a held-out check runs.
#[test]
fn nothing_of_a_held_out_check_stays_where_it_ran() {
    let repo = TestRepo::empty(RUNNER);
    write_check(&repo, "root", "sh src.sh");
    let copies = r#"for to in target "$HOME/.cache" "$HOME" /tmp .git .; do mkdir -p "$to" && cp -r t "$to/copy"; done 2>/dev/null; exit 1"#;
    let agent = format!(
        "case $RUNNER_ITER in 0001) cat > src.sh <<'EOS'\n{copies}\nEOS\n echo target > .gitignore;; \
         *) printf 'grep -rs heldout-canary-[0-9] . $HOME /tmp && echo FOUND\\nexit 0\\n' > src.sh;; esac; answer done"
    );
    let builder = RunBuilder::new(RUNNER)
        .executor_keys("")
        .agent(&agent)
        .guard("grep -rs 'heldout-canary-[0-9]' . \"$HOME\" /tmp && echo FOUND; true")
        .keys("max_attempts_default = 2");
    let repo = start(repo, &builder);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["checks_failed", "passed"]);
    assert_eq!(repo.iteration_file(2, "guard.log"), "");
    assert_secret(&repo);
}

#[test]
fn a_check_that_changed_needs_a_start() {
    let repo = start(with_folder(&["root"]), &RunBuilder::new(RUNNER).agent("echo hello > out; answer done"));
    write_check(&repo, "root", "true");
    let ran = repo.runner(&["loop"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("runner start"), "{}", ran.stderr);
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    assert_eq!(trailers(&repo, &commit_of(&repo, 1), "Runner-Heldout"), ["root/hidden green pass"]);
    assert_sound(&repo);
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_with_the_fix() {
    let cases = [("missing", "create it"), ("repo/inside", "outside of the repository"), ("", "outside of")];
    for (name, fix) in cases {
        let repo = RunBuilder::new(RUNNER).start_in(with_folder(&["root"]));
        fs::create_dir_all(repo.path("inside")).unwrap();
        let folder = match name {
            "repo/inside" => repo.path("inside"),
            "" => repo.outside().to_owned(),
            name => repo.outside().join(name),
        };
        repo.runner(&["config", "set", "checks.heldout", &folder.display().to_string()]).ok();
        let ran = repo.runner(&["start"]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(fix), "{name}: {}", ran.stderr);
    }
    let repo = start(with_folder(&["root"]), &RunBuilder::new(RUNNER));
    fs::rename(repo.outside().join("heldout"), repo.outside().join("moved")).unwrap();
    let ran = repo.runner(&["loop"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("checks.heldout"), "{}", ran.stderr);
    assert_eq!(repo.outcomes(), [""; 0]);
}

const SPLIT: &str = "[ \"$RUNNER_NODE_ID\" = root ] && { split; exit; }\n";

#[test]
fn held_out_checks_of_the_root_decide_whether_the_run_is_complete() {
    let agent = format!(
        "{SPLIT}case $RUNNER_NODE_ID in regression*) echo hello > out;; *) echo $RUNNER_NODE_ID > f$RUNNER_NODE_ID;; esac; answer done"
    );
    let repo = start(with_folder(&["root"]), &RunBuilder::new(RUNNER).agent(&agent));
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed", "passed"]);
    let subjects = repo.subjects("HEAD");
    assert!(subjects.iter().any(|subject| subject.contains("node regression-1 ")), "{subjects:?}");
    assert!(!repo.path(".runner/nodes/regression-1/checks.toml").exists(), "its command stays secret");
    assert_eq!(trailers(&repo, "HEAD", "Runner-Recheck"), ["root/hidden 0 heldout"]);
    assert_secret(&repo);
    assert_sound(&repo);
}

#[test]
fn rerun_repeats_held_out_checks_and_is_partial_without_them() {
    let repo = start(with_folder(&["root"]), &RunBuilder::new(RUNNER).agent("echo hello > out; answer done"));
    repo.runner(&["loop"]).ok();
    let ran = repo.runner(&["verify", "--rerun"]).ok().stdout;
    assert!(ran.contains("step=\"held-out check hidden before the work\""), "{ran}");
    assert!(ran.contains("step=\"held-out check hidden\""), "{ran}");
    fs::rename(repo.outside().join("heldout"), repo.outside().join("moved")).unwrap();
    repo.runner(&["verify"]).ok();
    let ran = repo.runner(&["verify", "--rerun"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stdout);
    assert!(ran.stdout.contains("verdict=partial"), "{}", ran.stdout);
}

/// Forgeries of a run in which a held-out check failed, and then passed.
#[test]
fn forged_held_out_results_are_named_by_their_rule() {
    let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo hello > out; answer done"#;
    let repo = with_folder(&["root"]);
    let table = table(&repo);
    let repo = RunBuilder::new(RUNNER)
        .agent(agent)
        .config_tables(&table)
        .guard_keys("room = \"require\"")
        .start_in(repo);
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["checks_failed", "passed"]);
    let digest = "\"digest\": \"";
    let forgeries: &[(Forgery, Rule, u32)] = &[
        (Message(2, "root/hidden failed pass", "root/hidden failed fail"), Rule::HeldoutGreen, 2),
        (Message(2, "root/hidden failed pass", "root/hidden failed none"), Rule::HeldoutGreen, 2),
        (Message(2, "root/hidden failed pass", "root/other failed pass"), Rule::HeldoutGreen, 2),
        (Message(2, "Runner-Heldout: root/hidden failed pass", "Runner-Hidden: x"), Rule::HeldoutGreen, 2),
        (Message(2, "root/hidden failed pass ", "root/hidden absent pass "), Rule::Heldout, 2),
        (Message(2, "root/hidden failed pass ", "root/hidden failed pass 0"), Rule::HeldoutGreen, 2),
        (Message(1, "root/hidden failed fail", "root/hidden failed pass"), Rule::Outcome, 1),
        (Message(1, "root/hidden failed fail", "root/hidden green fail"), Rule::HeldoutFrozen, 1),
        (Message(1, "Runner-Heldout: root/hidden", "Runner-Heldout: root/hid"), Rule::HeldoutRed, 1),
        (Trailer(2, "Runner-Heldout: root/more failed pass 00"), Rule::Heldout, 2),
        (Mended(1, STATE, "\"red\": \"failed\"", "\"red\": \"absent\""), Rule::HeldoutFrozen, 1),
        (Mended(2, STATE, "\"name\": \"hidden\"", "\"name\": \"easier\""), Rule::HeldoutFrozen, 2),
        (Mended(1, STATE, digest, "\"digest\": \"0"), Rule::RunStateInvalid, 1),
        (Mended(0, STATE, "\"red\": null", "\"red\": \"failed\""), Rule::HeldoutFrozen, 0),
    ];
    assert_found(&repo, forgeries);
}

#[test]
fn lint_runs_held_out_checks_and_counts_what_they_decide() {
    let repo = with_folder(&["root"]);
    let repo = start(repo, &RunBuilder::new(RUNNER));
    let sound = repo.runner(&["plan", "lint"]).ok();
    assert!(sound.stdout.contains(" checks=1 problems=0 "), "{}", sound.stdout);
    assert!(!sound.stdout.contains("prose="), "{}", sound.stdout);
    assert_secret(&repo);

    write_check(&repo, "root", "true");
    repo.runner(&["start"]).ok();
    let found = repo.runner(&["plan", "lint"]);
    assert_eq!(found.code, Some(2));
    let problem = "problem=green task=root check=hidden text=\"is held out and succeeds before the work\"";
    assert!(found.stdout.contains(problem), "{}", found.stdout);
    assert_secret(&repo);
}
