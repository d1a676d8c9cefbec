//! Real projects of three ecosystems: sessions of the real agents run the project's tests in the sandbox, install a
//! dependency where the configuration allows it, and read in the prompt where it does not. The packages come from a registry on this
//! machine.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::oracle::assert_sound;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::agents::real::{agent_folder, command, model_of, setup};

/// The registry's process. It ends with the test.
struct Registry {
    process: Child,
    port: String,
}

impl Registry {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/package_registry.py");
        let mut process = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A project, and what an agent does in it. `PORT` stands for the registry's port.
struct Project {
    files: &'static [(&'static str, &'static str)],
    /// Runs the tests that the project has.
    test: &'static str,
    /// Installs the package and runs a test that needs it.
    install: &'static str,
    /// A cache that the installation fills, in the home folder.
    cache: &'static str,
}

const NODE: Project = Project {
    files: &[
        (
            "package.json",
            r#"{"name": "app", "version": "1.0.0", "scripts": {"test": "node --test test.mjs"}}"#,
        ),
        (
            "test.mjs",
            "import test from 'node:test';\ntest('adds', () => { if (1 + 1 !== 2) throw new Error('no'); });\n",
        ),
        (".npmrc", "registry=http://127.0.0.1:PORT/npm/\nfetch-retries=0\naudit=false\nfund=false\n"),
        (".gitignore", "node_modules/\n"),
    ],
    test: "npm test",
    install: "npm install tiny-dep && node -e \"if (require('tiny-dep') !== 42) process.exit(1)\"",
    cache: ".npm",
};

const PYTHON: Project = Project {
    files: &[
        ("pyproject.toml", "[project]\nname = \"app\"\nversion = \"1.0.0\"\n"),
        (
            "test_app.py",
            "import unittest\n\nclass App(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1 + 1, 2)\n",
        ),
        (".gitignore", "deps/\n__pycache__/\n"),
    ],
    test: "python3 -m unittest -q",
    // Pip stores nothing that comes over plain HTTP, so the command writes to its cache. The interpreter itself: what a version manager puts in its place writes to its own folder after pip.
    install: "\"$(python3 -c 'import sys; print(sys.executable)')\" -m pip install -q --retries 0 --timeout 5 --disable-pip-version-check --target deps \
              --index-url http://127.0.0.1:PORT/simple tiny-dep && PYTHONPATH=deps python3 -c 'import tiny_dep; assert tiny_dep.ANSWER == 42' && touch ~/.cache/pip/writable",
    cache: ".cache/pip",
};

const RUST: Project = Project {
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\n\n[workspace]\n",
        ),
        ("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"),
        (
            ".cargo/config.toml",
            "[registries.tiny]\nindex = \"sparse+http://127.0.0.1:PORT/cargo/\"\n\n[net]\nretry = 0\n",
        ),
        (".gitignore", "target/\n"),
    ],
    test: "cargo test -q --offline",
    install: "cargo add -q --registry tiny tiny-dep && echo '#[test] fn has() { assert_eq!(tiny_dep::ANSWER, 42); }' >> src/lib.rs && cargo test -q",
    cache: ".cargo/registry",
};

/// The PATH with the toolchain itself: the programs of rustup need the user's own home.
fn path() -> String {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap().display();
    format!("{toolchain}:{}", std::env::var("PATH").unwrap())
}

/// One session of an agent that runs the tests and then installs the package. Returns the repository and what was printed.
fn session(kind: &str, project: &Project, network: &str) -> (TestRepo, String) {
    let registry = Registry::start();
    let fill = |text: &str| text.replace("PORT", &registry.port);
    let shell = format!(
        "({}) > tests.log 2>&1 && echo tests-ran > result; ({}) > install.log 2>&1 && echo installed >> result || echo not-installed >> result; mv result result.txt",
        project.test,
        fill(project.install)
    );
    // Codex reports a command that takes long as running, and its turn would end it.
    let waits =
        "[[part.step]]\ndo.shell = 'for i in $(seq 80); do test -e result.txt && break; sleep 0.1; done'\n"
            .repeat(8);
    let script = format!(
        "[[part]]\n[[part.step]]\ndo.shell = '''{shell}'''\n{waits}[[part.step]]\ndo.final = {{ status = 'done', summary = 'tried' }}\n"
    );
    let model = model_of(&script);
    let mut builder =
        setup(kind, &model.url()).guard("true").executor_keys(&format!("network = \"{network}\""));
    for (name, text) in project.files {
        builder = builder.file(name, fill(text));
    }
    let repo = builder.start_in(TestRepo::empty_in(RUNNER, tempfile::tempdir_in(agent_folder()).unwrap()));
    let start = run(command(&repo, &["start"]).env("PATH", path())).ok().stdout;
    let step = run(command(&repo, &["step"]).env("PATH", path()));
    assert_eq!(step.code, Some(0), "{}{}", step.stdout, step.stderr);
    assert_sound(&repo);
    (repo, start)
}

fn context(repo: &TestRepo) -> String {
    let read = |name: &str| std::fs::read_to_string(repo.path(name)).unwrap_or_default();
    format!("{}{}{}", read("tests.log"), read("install.log"), repo.iteration_file(1, "executor.log"))
}

fn assert_installs(kind: &str, project: &Project) {
    let (repo, start) = session(kind, project, "registries");
    assert_eq!(repo.read("result.txt"), "tests-ran\ninstalled\n", "{kind}: {}", context(&repo));
    let cache = repo.outside().join("home").join(project.cache);
    assert!(
        std::fs::read_dir(&cache).is_ok_and(|mut entries| entries.next().is_some()),
        "{}",
        cache.display()
    );
    assert!(start.contains("network=registries"), "{start}");
    let prompt = repo.iteration_file(1, "prompt.md");
    assert!(prompt.contains("Use the network for nothing else."), "{prompt}");
    let doctor = run(command(&repo, &["doctor"]).env("PATH", path())).stdout;
    assert!(
        doctor.contains("check=network verdict=ok found=\"registries: package managers can install"),
        "{doctor}"
    );
}

fn assert_refuses(kind: &str, project: &Project) {
    let (repo, start) = session(kind, project, "none");
    assert_eq!(repo.read("result.txt"), "tests-ran\nnot-installed\n", "{kind}: {}", context(&repo));
    assert!(start.contains("network=none"), "{start}");
    let prompt = repo.iteration_file(1, "prompt.md");
    assert!(prompt.contains("Commands have no network"), "{prompt}");
    let doctor = run(command(&repo, &["doctor"]).env("PATH", path())).stdout;
    assert!(doctor.contains("found=\"none: commands can download nothing"), "{doctor}");
}

#[test]
fn claude_tests_and_extends_a_node_project() {
    assert_installs("claude", &NODE);
}

#[test]
fn claude_tests_and_extends_a_python_project() {
    assert_installs("claude", &PYTHON);
}

#[test]
fn claude_tests_and_extends_a_rust_project() {
    assert_installs("claude", &RUST);
}

#[test]
fn codex_tests_and_extends_a_node_project() {
    assert_installs("codex", &NODE);
}

#[test]
fn codex_tests_and_extends_a_python_project() {
    assert_installs("codex", &PYTHON);
}

#[test]
fn codex_tests_and_extends_a_rust_project() {
    assert_installs("codex", &RUST);
}

#[test]
fn claude_without_network_tests_and_installs_nothing() {
    for project in [&NODE, &PYTHON, &RUST] {
        assert_refuses("claude", project);
    }
}

#[test]
fn codex_without_network_tests_and_installs_nothing() {
    for project in [&NODE, &PYTHON, &RUST] {
        assert_refuses("codex", project);
    }
}
