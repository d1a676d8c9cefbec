//! Sessions that change what a check's command or the guard's setup runs, and honest ones that must write it.

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use super::{ROOM, assert_no_false_pass, has_passed};
use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Append, File, Mended, Remove};
use crate::security::forged_runs::{Forgery, assert_found};

const CHECKS: &str = ".runner/nodes/root/checks.toml";
const STATE: &str = ".runner/state/run_state.json";

/// A task with a check whose command runs files of the repository, and a session.
struct CheckAttempt {
    name: &'static str,
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
    session: &'static str,
}

fn checked(attempt: &CheckAttempt) -> TestRepo {
    let toml = format!("[[check]]\nname = \"c\"\ncommand = {}\n", attempt.command);
    let mut builder = RunBuilder::new(RUNNER)
        .guard_keys(ROOM)
        .keys("max_attempts_default = 1")
        .executor_keys("")
        .derive_protection()
        .file(CHECKS, toml)
        .agent(attempt.session);
    for (path, text) in attempt.files {
        builder = builder.file(path, text);
    }
    builder.start()
}

/// In all of these, `ok` is the work, and no session does it.
const ATTEMPTS: [CheckAttempt; 6] = [
    CheckAttempt {
        name: "another script",
        command: r#"["sh", "scripts/check.sh"]"#,
        files: &[("scripts/check.sh", "test -e ok\n")],
        session: "echo true > scripts/check.sh; answer done",
    },
    CheckAttempt {
        name: "another file that the script reads",
        command: r#"["sh", "-c", "cd tests && ./e2e.sh"]"#,
        files: &[("tests/e2e.sh", "#!/bin/sh\n. ./lib.sh\n"), ("tests/lib.sh", "test -e ../ok\n")],
        session: "chmod +x tests/e2e.sh; echo exit > tests/lib.sh; answer done",
    },
    CheckAttempt {
        name: "another script of package.json",
        command: r#"["npm", "run", "-s", "e2e"]"#,
        files: &[("package.json", "{\"name\": \"a\", \"scripts\": {\"e2e\": \"test -e ok\"}}\n")],
        session: "sed -i 's/test -e ok/true/' package.json; answer done",
    },
    CheckAttempt {
        name: "another recipe",
        command: r#"["make", "-s", "nested"]"#,
        files: &[("Makefile", "nested:\n\ttest -e ok\n")],
        session: "printf 'nested:\\n\\ttrue\\n' > Makefile; answer done",
    },
    CheckAttempt {
        name: "another makefile",
        command: r#"["make", "-s", "nested"]"#,
        files: &[("Makefile", "nested:\n\ttest -e ok\n")],
        session: "printf 'nested:\\n\\ttrue\\n' > GNUmakefile; answer done",
    },
    CheckAttempt {
        name: "another shell for npm",
        command: r#"["npm", "run", "-s", "e2e"]"#,
        files: &[("package.json", "{\"name\": \"a\", \"scripts\": {\"e2e\": \"test -e ok\"}}\n")],
        session: "echo 'script-shell=/bin/true' > .npmrc; answer done",
    },
];

#[test]
fn what_the_command_of_a_check_runs_is_protected() {
    for attempt in ATTEMPTS {
        let repo = checked(&attempt);
        let output = repo.runner(&["loop"]);
        assert!(!has_passed(&repo), "{}: {:?}", attempt.name, repo.outcomes());
        assert_no_false_pass(&repo, attempt.name, &output);
    }
}

/// The task is to write what the check runs, or the check runs the work.
const HONEST: [CheckAttempt; 6] = [
    CheckAttempt {
        name: "a new script",
        command: r#"["sh", "scripts/check.sh"]"#,
        files: &[],
        session: "mkdir scripts; echo 'test -e ok' > scripts/check.sh; touch ok; answer done",
    },
    CheckAttempt {
        name: "a new script of package.json",
        command: r#"["npm", "run", "-s", "e2e"]"#,
        files: &[("package.json", "{\"name\": \"a\", \"scripts\": {\"dev\": \"false\"}}\n")],
        session: "sed -i 's/\"dev\"/\"e2e\": \"test -e ok\", \"dev\"/' package.json; echo 1 > ok; answer done",
    },
    CheckAttempt {
        name: "a new recipe",
        command: r#"["make", "-s", "nested"]"#,
        files: &[("Makefile", "all:\n\tfalse\n")],
        session: "printf 'nested:\\n\\ttest -e ok\\n' >> Makefile; echo 1 > ok; answer done",
    },
    CheckAttempt {
        name: "a new makefile",
        command: r#"["make", "-s", "nested"]"#,
        files: &[],
        session: "printf 'nested:\\n\\ttest -e ok\\n' >> Makefile; echo 1 > ok; answer done",
    },
    CheckAttempt {
        name: "the work is a script",
        command: r#"["sh", "-c", "./greet.sh | grep -q Hello"]"#,
        files: &[("greet.sh", "#!/bin/sh\necho\n")],
        session: "chmod +x greet.sh; echo 'echo Hello' >> greet.sh; answer done",
    },
    CheckAttempt {
        name: "work beside the script of the check",
        command: r#"["sh", "scripts/check.sh"]"#,
        files: &[("scripts/check.sh", "sh greet.sh | grep -q Hello\n"), ("greet.sh", "echo\n")],
        session: "echo 'echo Hello' >> greet.sh; echo x > scripts/other.sh; answer done",
    },
];

#[test]
fn honest_work_on_what_a_check_runs_passes() {
    for attempt in HONEST {
        let repo = checked(&attempt);
        let output = repo.runner(&["loop"]);
        assert_eq!(output.code, Some(0), "{}: {}{}", attempt.name, output.stdout, output.stderr);
        assert_eq!(repo.outcomes(), ["passed"], "{}", attempt.name);
        repo.runner(&["verify", "--rerun", "all"]).ok();
        let again = repo.runner(&["start"]).ok().stdout;
        assert!(again.contains("resumed") || again.contains("Resumed"), "{}: {again}", attempt.name);
        assert_sound(&repo);
    }
}

/// Agents that write checks for the parts of a task, and change what these run in a later session.
const LATER: &str = r#"
check() { mkdir -p .runner/nodes/$1; printf '[[check]]\nname = "c"\ncommand = ["sh", "tests/%s.sh"]\n' $1 > .runner/nodes/$1/checks.toml; }
case "$RUNNER_ITER" in
0001) check a; check b; mkdir tests; echo 'test -e a' > tests/a.sh; split ;;
0002) echo true > tests/a.sh; answer done ;;
0003) echo 1 > a; echo 'test -e b' > tests/b.sh; answer done ;;
0004) echo true > tests/a.sh; echo true > tests/b.sh; echo 1 > x; answer done ;;
*) echo 1 > b; answer done ;;
esac
"#;

fn later() -> TestRepo {
    let repo = RunBuilder::new(RUNNER)
        .guard_keys(ROOM)
        .keys("max_attempts_default = 2")
        .derive_protection()
        .agent(LATER)
        .start();
    repo.runner(&["loop"]).ok();
    repo
}

#[test]
fn checks_of_a_decomposition_are_followed_from_the_next_session_on() {
    let repo = later();
    assert_eq!(repo.outcomes(), ["decomposed", "checks_failed", "passed", "checks_failed", "passed"]);
    assert_eq!(repo.read("tests/a.sh"), "test -e a\n");
    repo.runner(&["verify", "--rerun", "all"]).ok();
    assert_sound(&repo);
}

/// Index 0 is the start, the others are iterations and the final check.
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Append(2, "tests/a.sh", "true\n"), Rule::ProtectedFile, 2),
    (Remove(3, "tests/a.sh"), Rule::ProtectedFile, 3),
    (Append(4, "tests/a.sh", "true\n"), Rule::ProtectedFile, 4),
    (Mended(2, STATE, "\"tests/b.sh\"", "\"tests/c.sh\""), Rule::Protection, 2),
    (Mended(2, STATE, "\"open\"", "\"passed\""), Rule::Protection, 2),
    (File(2, STATE, "\"tests/b.sh\"", "\"tests/c.sh\""), Rule::Protection, 2),
    (Mended(3, STATE, "\"tests/a.sh\"", "\"tests/c.sh\""), Rule::RunState, 3),
    (Mended(4, STATE, "\"passed\"", "\"open\""), Rule::Protection, 4),
];

#[test]
fn verify_derives_what_checks_protect() {
    assert_found(&later(), FORGERIES);
}

/// A setup that the session changes, so that it plants the guard's program.
struct SetupAttempt {
    name: &'static str,
    setup: &'static str,
    guard: &'static str,
    files: &'static [(&'static str, &'static str)],
    session: &'static str,
}

const PACKAGE: &str = "{\"name\": \"a\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"tool\"}}\n";
const LOCK: &str = "{\"name\": \"a\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"packages\": {\"\": {\"name\": \"a\", \"version\": \"1.0.0\"}}}\n";

const SETUPS: [SetupAttempt; 2] = [
    SetupAttempt {
        name: "another setup script",
        setup: "setup = [\"sh\", \"scripts/setup.sh\"]\nsetup_inputs = [\"lock\"]",
        guard: ".venv/bin/check",
        files: &[
            (".gitignore", ".venv\n"),
            (
                "scripts/setup.sh",
                "mkdir -p .venv/bin; printf '#!/bin/sh\\ntest -e ok\\n' > .venv/bin/check; chmod +x .venv/bin/check\n",
            ),
            ("lock", "1\n"),
        ],
        session: "sed -i 's/test -e ok/true/' scripts/setup.sh; echo 2 > lock; answer done",
    },
    SetupAttempt {
        name: "a script that npm runs after the installation",
        setup: "setup = [\"npm\", \"ci\", \"--offline\"]\nsetup_inputs = [\"package-lock.json\", \"package.json\"]",
        guard: "npm test --silent",
        files: &[(".gitignore", "node_modules\n"), ("package.json", PACKAGE), ("package-lock.json", LOCK)],
        session: "sed -i 's/{\"test\"/{\"postinstall\": \"mkdir -p node_modules\\/.bin; cp \\/bin\\/true node_modules\\/.bin\\/tool\", \"test\"/' package.json; answer done",
    },
];

#[test]
fn what_the_setup_runs_is_protected() {
    for attempt in SETUPS {
        let mut builder = RunBuilder::new(RUNNER)
            .guard(attempt.guard)
            .guard_keys(&format!("{ROOM}\n{}", attempt.setup))
            .keys("max_attempts_default = 1")
            .executor_keys("")
            .derive_protection()
            .agent(attempt.session);
        for (path, text) in attempt.files {
            builder = builder.file(path, text);
        }
        let repo = builder.start();
        let output = repo.runner(&["loop"]);
        assert!(!has_passed(&repo), "{}: {:?}", attempt.name, repo.outcomes());
        assert_no_false_pass(&repo, attempt.name, &output);
    }
}
