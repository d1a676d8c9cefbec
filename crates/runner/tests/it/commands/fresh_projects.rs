//! Six fresh repositories: `runner run` goes from nothing to COMPLETE with the right guard, protected files and caches, and
//! `runner land` creates a branch that a reviewer would accept.
//!
//! Cargo, npm, Python and make are the real ones. pnpm, pytest and Go are replaced where the machine does not have them, by
//! programs that do the same for these projects; `just guard-projects` runs all six with the real tools.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::assert_proved;

/// An agent that splits the goal into two tasks and does them: `a` with the first script, `b` with the second.
const AGENT: &str = r#"
answer() { printf '{"status": "%s", "summary": "%s"}' "$1" "$2" > "$RUNNER_OUTPUT"; }
child() { printf '{"id": "%s", "order": %s, "title": "%s", "goal": "%s", "acceptance": [], "passes": false, "attempts": 0, "max_attempts": 3, "children": []}' "$1" "$2" "$3" "$3"; }
case "$RUNNER_NODE_ID" in
    root)
        sed -i "s/\"children\": \[\]/\"children\": [$(child a 1 'Add the function'), $(child b 2 'Test the function')]/" "$RUNNER_TREE"
        answer decomposed 'two steps' ;;
    a) FIRST; answer done 'added it' ;;
    b) SECOND; answer done 'tested it' ;;
esac
"#;

/// A repository of one kind, and what must come of it.
struct FreshProject {
    repo: TestRepo,
    path: String,
    agent: String,
}

impl FreshProject {
    fn new(files: &[(&str, &str)], first: &str, second: &str) -> Self {
        let repo = TestRepo::empty(RUNNER);
        repo.git(&["init", "-q", "-b", "main"]);
        files.iter().for_each(|(name, text)| repo.write(name, text));
        repo.commit_all("root");
        let agent = repo.outside().join("agent.sh");
        std::fs::write(&agent, AGENT.replace("FIRST", first).replace("SECOND", second)).unwrap();
        let path = std::env::var("PATH").unwrap();
        Self { agent: format!("sh {}", agent.display()), repo, path }
    }

    /// Puts a folder before the others on PATH.
    fn with_programs(mut self, folder: &Path) -> Self {
        self.path = format!("{}:{}", folder.display(), self.path);
        self
    }

    fn runner(&self, args: &[&str]) -> RunOutput {
        run(self.repo.runner_command(args).env("PATH", &self.path))
    }

    /// Runs the goal to its end, and checks what the setup screen showed: `stack`, `guard`, `setup`, `keep`. The section of the
    /// guide has the same.
    fn assert_completes(&self, section: &str, setup: &[(&str, &str)]) -> RunOutput {
        assert_documented(section, setup);
        let output = self.runner(&["run", "Add a function that doubles", "--yes", "--agent", &self.agent]);
        assert_eq!(output.code, Some(0), "{}\n{}\n{}", output.stdout, output.stderr, self.logs());
        let screen = output.stdout.lines().next().unwrap();
        for (key, value) in setup {
            assert!(screen.contains(&format!("{key}={value}")), "{key}: {screen}");
        }
        for event in ["baseline_ended guard=pass", "final_check_ended guard=pass", "stop=complete"] {
            assert!(output.stdout.contains(event), "{event}: {}", output.stdout);
        }
        assert!(screen.contains("room=\"the guard runs on the files to commit, in a sandbox\""), "{screen}");
        assert_proved(&self.repo);
        output
    }

    fn logs(&self) -> String {
        let shown = run(self.repo.command("sh").args(["-c", "tail -n 20 .runner/iterations/*/*.log"]));
        shown.stdout
    }

    /// Lands the run: two commits with the tasks' titles, these files, and nothing of the runner's.
    fn assert_lands(&self, changed: &[&str]) {
        let repo = &self.repo;
        let base = repo.git(&["rev-parse", "main"]);
        let landed = self.runner(&["land"]);
        assert_eq!(landed.code, Some(0), "{}\n{}", landed.stdout, landed.stderr);
        let branch = landed.value("branch").unwrap().to_owned();
        assert_eq!(branch, "land/add-a-function-that-doubles");
        assert_eq!(
            repo.subjects(&format!("main..{branch}")),
            ["Test the function", "Add the function"],
            "one commit per task"
        );
        let names = repo.git(&["diff", "--name-only", &format!("main..{branch}")]);
        assert_eq!(names.lines().collect::<Vec<_>>(), changed);
        let body = repo.git(&["log", "-1", "--format=%b", &branch]);
        assert!(body.starts_with("tested it\n\nRunner-Run: add-a-function-that-doubles\n"), "{body}");
        assert_eq!(repo.git(&["rev-parse", "main"]), base, "the base branch does not move");
        assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1, "no scratch work tree is left");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
    }

    /// A file of the landed branch.
    fn landed(&self, path: &str) -> String {
        self.repo.git(&["show", &format!("land/add-a-function-that-doubles:{path}")])
    }
}

/// Asserts that a section of the guide on stacks has these values as tested.
fn assert_documented(section: &str, setup: &[(&str, &str)]) {
    const GUIDE: &str = include_str!("../../../../../docs/guide/stacks.md");
    let (_, rest) = GUIDE.split_once(&format!("\n## {section}\n")).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.contains(", tested |")).count();
    let mut documented = 0;
    for (key, name) in [("guard", "guard"), ("setup", "setup"), ("keep", "kept")] {
        let Some((_, value)) = setup.iter().find(|(found, _)| *found == key) else { continue };
        let row = format!("| {name}, tested | `{}` |", value.trim_matches('"'));
        assert!(section.contains(&row), "`{row}` is not in:\n{section}");
        documented += 1;
    }
    assert_eq!(rows, documented, "{section}");
}

fn write_program(folder: &Path, name: &str, script: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[test]
fn rust() {
    let manifest = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let files = [
        ("Cargo.toml", manifest),
        ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "pub fn one() -> u8 { 1 }\n\n#[test]\nfn works() { assert_eq!(one(), 1); }\n"),
        ("rust-toolchain.toml", ""),
        (".gitignore", "/target\n"),
    ];
    let first = "echo 'pub fn double(x: u8) -> u8 { 2 * x }' >> src/lib.rs";
    let second = "mkdir tests; echo '#[test] fn doubles() { assert_eq!(x::double(2), 4); }' > tests/it.rs";
    // The tool chain itself: rustup would need the home of the user.
    let programs = Path::new(env!("CARGO")).parent().unwrap();
    let project = FreshProject::new(&files, first, second).with_programs(programs);
    let output = project.assert_completes(
        "Rust",
        &[
            ("stack", "\"Cargo (Cargo.toml)\""),
            ("guard", "\"cargo test\""),
            ("protected", "\".cargo/config, .cargo/config.toml"),
        ],
    );
    assert!(!output.stdout.contains("keep="), "cargo needs no folder from the work tree: {}", output.stdout);
    project.assert_lands(&["src/lib.rs", "tests/it.rs"]);
}

/// A package with a dependency in the repository itself.
const NODE_FILES: [(&str, &str); 6] = [
    (
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "private": true, "scripts": {"test": "node test.js"}, "dependencies": {"dep": "file:dep"}}"#,
    ),
    ("dep/package.json", r#"{"name": "dep", "version": "1.0.0"}"#),
    ("dep/index.js", "module.exports = 7\n"),
    // The guard's own script is protected, and runs what is in a folder.
    (
        "test.js",
        "if (require('dep') !== 7) process.exit(1)\nfor (const file of require('fs').readdirSync('checks')) require('./checks/' + file)\n",
    ),
    ("checks/none.js", ""),
    (".gitignore", "node_modules\n"),
];

#[test]
fn node_with_npm() {
    let lock = r#"{"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
        "": {"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:dep"}},
        "dep": {"version": "1.0.0"},
        "node_modules/dep": {"resolved": "dep", "link": true}}}"#;
    let files = [&NODE_FILES[..], &[("package-lock.json", lock)]].concat();
    let first = "echo 'module.exports = x => 2 * x' > double.js";
    let second = r#"echo "if (require('../double')(2) !== 4) process.exit(1)" > checks/double.js"#;
    let project = FreshProject::new(&files, first, second);
    project.assert_completes("Node with npm", &[
        ("stack", "\"Node.js (package.json, npm)\""),
        ("guard", "\"npm test\""),
        ("setup", "\"npm ci\""),
        (
            "protected",
            "\".npmrc, .yarnrc, .yarnrc.yml, bunfig.toml, node_modules/.bin/node, pnpm-workspace.yaml, test.js, package.json#scripts",
        ),
    ]);
    project.assert_lands(&["checks/double.js", "double.js"]);
}

/// Installs dependencies of the form `file:` by copying them, and runs scripts with them.
const SMALL_PNPM: &str = r#"#!/bin/sh
case "$1" in
    install)
        [ "$2" = --frozen-lockfile ] && [ -f pnpm-lock.yaml ] || { echo 'no lock file' >&2; exit 1; }
        mkdir -p node_modules && cp -R dep node_modules/dep ;;
    test) exec sh -c "$(node -p "require('./package.json').scripts.test")" ;;
    *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"#;

const PNPM_LOCK: &str = "lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .:\n    dependencies:\n      dep:\n        specifier: file:dep\n        version: file:dep\n\npackages:\n\n  dep@file:dep:\n    resolution: {directory: dep, type: directory}\n\nsnapshots:\n\n  dep@file:dep: {}\n";

#[test]
fn node_with_pnpm() {
    let files = [&NODE_FILES[..], &[("pnpm-lock.yaml", PNPM_LOCK)]].concat();
    let first = "echo 'module.exports = x => 2 * x' > double.js";
    let second = r#"echo "if (require('../double')(2) !== 4) process.exit(1)" > checks/double.js"#;
    let mut project = FreshProject::new(&files, first, second);
    if !is_installed("pnpm") {
        let folder = project.repo.outside().join("bin");
        write_program(&folder, "pnpm", SMALL_PNPM);
        project = project.with_programs(&folder);
    }
    project.assert_completes(
        "Node with pnpm",
        &[
            ("stack", "\"Node.js (package.json, pnpm)\""),
            ("guard", "\"pnpm test\""),
            ("setup", "\"pnpm install --frozen-lockfile\""),
        ],
    );
    project.assert_lands(&["checks/double.js", "double.js"]);
}

/// Runs the functions `test_*` of the files `test_*.py`, as pytest does.
const SMALL_PYTEST: &str = "import glob, runpy, sys\nsys.path.insert(0, '.')\nfor path in sorted(glob.glob('**/test_*.py', recursive=True)):\n    if path.startswith('.venv'): continue\n    for name, test in runpy.run_path(path).items():\n        if name.startswith('test_'): test()\n";

#[test]
fn python_with_pytest() {
    let files = [
        ("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n\n[tool.pytest.ini_options]\n"),
        ("double.py", ""),
        ("tests/test_it.py", "def test_it():\n    assert 1 + 1 == 2\n"),
        (".gitignore", ".venv\n__pycache__\n.pytest_cache\n"),
    ];
    let first = "echo 'def double(x): return 2 * x' > double.py";
    let second = "printf 'from double import double\\n\\ndef test_double():\\n    assert double(2) == 4\\n' > tests/test_double.py";
    let project = FreshProject::new(&files, first, second);
    let repo = &project.repo;
    run(repo.command("python3").args(["-m", "venv", "--without-pip", ".venv"])).ok();
    let script = "import site; print(site.getsitepackages()[0])";
    let packages = run(repo.command(".venv/bin/python").args(["-c", script])).ok().stdout;
    let packages = Path::new(packages.trim());
    let script = "import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))";
    let installed = run(repo.command("python3").args(["-c", script]));
    if installed.code == Some(0) {
        std::fs::write(packages.join("installed.pth"), installed.stdout).unwrap();
    } else {
        std::fs::write(packages.join("pytest.py"), SMALL_PYTEST).unwrap();
    }
    project.assert_completes(
        "Python with pytest",
        &[
            ("stack", "\"Python (pyproject.toml, .venv)\""),
            ("guard", "\".venv/bin/python -m pytest\""),
            ("keep", ".venv"),
        ],
    );
    project.assert_lands(&["double.py", "tests/test_double.py"]);
}

/// Passes if every test file stands beside code with balanced braces.
const SMALL_GO: &str = r#"#!/bin/sh
[ "$1" = test ] && [ -f go.mod ] || exit 1
for file in $(find . -name '*.go'); do
    [ "$(tr -cd '{' < "$file" | wc -c)" = "$(tr -cd '}' < "$file" | wc -c)" ] || { echo "$file: syntax error"; exit 1; }
done
"#;

#[test]
fn go() {
    let files = [
        ("go.mod", "module example.com/x\n\ngo 1.19\n"),
        ("x.go", "package x\n\nfunc One() int { return 1 }\n"),
        (
            "x_test.go",
            "package x\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fail()\n\t}\n}\n",
        ),
    ];
    let first = "printf '\\nfunc Double(x int) int { return 2 * x }\\n' >> x.go";
    let second = "printf '\\nfunc TestDouble(t *testing.T) {\\n\\tif Double(2) != 4 {\\n\\t\\tt.Fail()\\n\\t}\\n}\\n' >> x_test.go";
    let mut project = FreshProject::new(&files, first, second);
    if !is_installed("go") {
        let folder = project.repo.outside().join("bin");
        write_program(&folder, "go", SMALL_GO);
        project = project.with_programs(&folder);
    }
    project.assert_completes("Go", &[("stack", "\"Go (go.mod)\""), ("guard", "\"go test ./...\"")]);
    project.assert_lands(&["x.go", "x_test.go"]);
}

#[test]
fn makefile_monorepo() {
    let files = [
        ("Makefile", "test:\n\tsh api/check.sh\n\tcd web && node test.js\n"),
        ("api/check.sh", "test -f api/double.sh || test ! -f api/double.txt\n"),
        ("web/package.json", r#"{"name": "web", "scripts": {"test": "node test.js"}}"#),
        ("web/test.js", ""),
    ];
    let first = "echo 'echo $((2 * $1))' > api/double.sh";
    let second = "printf 'test:\\n' > Makefile; echo 'process.exit(0)' > web/double.js";
    let project = FreshProject::new(&files, first, second);
    let output = project.assert_completes(
        "make and just",
        &[
            ("stack", "\"make, Node.js (Makefile, target `test`)\""),
            ("guard", "\"make test\""),
            ("protected", "\"GNUmakefile, Makefile"),
        ],
    );
    assert!(!output.stdout.contains(" setup="), "nothing to install: {}", output.stdout);
    project.assert_lands(&["api/double.sh", "web/double.js"]);
    assert!(project.landed("Makefile").starts_with("test:\n\tsh api/check.sh"), "the guard is restored");
}
