//! Tasks and results in the formats of other frameworks, and root file systems of cases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::test_repo::run;

use crate::{Suite, runner, shell};

/// The task with the structure of Harbor's multi-step recipe.
fn multi_step_task() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/samples/multi-step")
}

fn import(suite: &Suite, arguments: &[&str]) {
    fs::create_dir_all(suite.repo.path("eval/cases")).unwrap();
    suite.eval(&[&["import"], arguments].concat()).ok();
}

#[test]
fn steps_of_a_harbor_task_become_tasks_with_checks() {
    let suite = Suite::new();
    let task = multi_step_task();
    import(&suite, &["harbor", &task.to_string_lossy()]);
    let output = suite.eval(&["run", "--agent", "oracle", "--run", "r", "--isolation", "required"]).ok();
    assert_eq!(suite.outcomes(), ["multi-step success"], "{}", output.stdout);
    let folder = "eval/results/multi-step/r.oracle.t01.a1";
    let tree: Value = serde_json::from_str(&suite.repo.read(&format!("{folder}/tree.json"))).unwrap();
    let children = tree["root"]["children"].as_array().unwrap();
    let ids: Vec<&str> = children.iter().map(|child| child["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["scaffold", "implement", "document"]);
    assert!(children.iter().all(|child| child["passes"] == true), "{tree}");
    // Each step was red before its work and green after it.
    let log =
        suite.repo.command("git").args(["-C", "eval/workspaces/multi-step_latest", "log"]).output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    let lines = log.lines().map(str::trim);
    let proven = lines.filter(|line| {
        ["failed", "absent"].iter().any(|red| line.starts_with(&format!("Runner-Check: tests {red} 0")))
    });
    assert_eq!(proven.count(), 3, "{log}");
    let checks: Value = serde_json::from_str(&suite.repo.read(&format!("{folder}/checks.json"))).unwrap();
    let output = checks["checks"][0]["output"].as_str().unwrap();
    assert!(output.contains("ok scaffold") && output.contains("1..3"), "{output}");
}

#[test]
fn step_that_was_never_done_fails_the_task() {
    let suite = Suite::new();
    import(&suite, &["harbor", &multi_step_task().to_string_lossy()]);
    // Without the checks of its steps, an agent that does only the last one completes the plan.
    let solution = suite.repo.read("eval/cases/multi-step/solution.toml");
    let last = solution.split("[[session]]").last().unwrap();
    let nothing = "[[session]]\nanswer = { status = \"done\", summary = \"x\" }\n";
    suite.repo.write("eval/cases/multi-step/solution.toml", format!("[[session]]{last}{nothing}"));
    suite.eval(&["run", "--agent", "oracle", "--run", "off", "--arm", "leaf_checks=off"]);
    suite.eval(&["run", "--agent", "oracle", "--run", "on"]);
    let results = suite.results();
    assert!(
        results.iter().all(|result| result.outcome != "success" && result.cause != "harness"),
        "{results:?}"
    );
    assert_eq!(results.len(), 2);
}

/// Installs the part of pytest that the judge uses for the user, for machines without pytest.
fn install_pytest(suite: &Suite) {
    let script = "import site; print(site.getusersitepackages())";
    let folder = run(suite.repo.command("python3").args(["-c", script])).ok().stdout;
    let folder = Path::new(folder.trim()).join("pytest");
    fs::create_dir_all(&folder).unwrap();
    let program = r#"
import importlib.util

def main(arguments):
    for name in [argument for argument in arguments if "::" in argument]:
        path, test = name.split("::")
        spec = importlib.util.spec_from_file_location("t", path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            getattr(module, test)()
            print("PASSED", name)
        except Exception as error:
            print("FAILED", name, "-", error)
"#;
    fs::write(folder.join("__init__.py"), program).unwrap();
}

/// A repository with a fault, whose fix is its newest commit.
fn swe_bench_bundle(suite: &Suite) -> String {
    let git = |arguments: &[&str]| {
        run(suite.repo.command("git").arg("-C").arg("project").args(arguments)).ok().stdout
    };
    fs::create_dir_all(suite.repo.path("project/tests")).unwrap();
    fs::create_dir_all(suite.repo.path("bundles")).unwrap();
    suite.repo.write("project/calc.py", "def add(a, b):\n    return a - b\n");
    suite.repo.write(
        "project/tests/test_old.py",
        "def test_zero():\n    import calc\n    assert calc.add(0, 0) == 0\n",
    );
    install_pytest(suite);
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["-c", "user.name=U", "-c", "user.email=u@h", "commit", "-qm", "base"]);
    let base = git(&["rev-parse", "HEAD"]).trim().to_owned();
    suite.repo.write("project/calc.py", "def add(a, b):\n    return a + b\n");
    git(&["-c", "user.name=U", "-c", "user.email=u@h", "commit", "-qam", "SECRET-FIX"]);
    git(&["bundle", "create", "-q", "../bundles/o__calc.bundle", "main"]);
    base
}

#[test]
fn swe_bench_instance_is_judged_and_its_patch_exported() {
    // On a disk: the sandbox of the work under test has a /dev of its own, without a home in /dev/shm.
    let suite = Suite::on_disk();
    let base = swe_bench_bundle(&suite);
    let test_patch = "diff --git a/tests/test_new.py b/tests/test_new.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/test_new.py\n\
                      @@ -0,0 +1,3 @@\n+def test_add():\n+    import calc\n+    assert calc.add(2, 3) == 5\n";
    let patch = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n\
                 -    return a - b\n+    return a + b\n";
    let instance = serde_json::json!({
        "instance_id": "o__calc-1", "repo": "o/calc", "base_commit": base, "problem_statement": "add subtracts",
        "test_patch": test_patch, "patch": patch, "FAIL_TO_PASS": "[\"tests/test_new.py::test_add\"]",
        "PASS_TO_PASS": ["tests/test_old.py::test_zero"],
    });
    suite.repo.write("instances.jsonl", format!("{instance}\n"));
    import(&suite, &["swe-bench", "instances.jsonl", "--repos", "bundles"]);
    // A pytest in the work, and one that its tests import, claim that every test passes.
    let forged =
        "import sys\nfor name in sys.argv[1:]:\n    print('PASSED', name)\ndef main(arguments):\n    pass\n";
    let text = Value::from(forged);
    let session = format!(
        "[[session]]\nanswer = {{ status = \"done\", summary = \"x\" }}\n{}[[session.do]]\nwrite = {{ path = \"pytest/__main__.py\", text = {text} }}\n\
         [[session.do]]\nwrite = {{ path = \"pytest/__init__.py\", text = {text} }}\n",
        shell("git log --all -p | grep -c SECRET-FIX > seen.txt")
    );
    suite.repo.write("eval/cases/o__calc-1/cheat.toml", session);
    let case = suite.repo.read("eval/cases/o__calc-1/case.toml");
    let case = case.replace("[case]\n", "[case]\ncheats = [\"cheat.toml\"]\n");
    suite.repo.write("eval/cases/o__calc-1/case.toml", case);
    suite.eval(&["run", "--agent", "cheat", "--agent", "nop", "--agent", "oracle", "--run", "r"]).ok();
    assert_eq!(suite.outcomes(), ["o__calc-1 fail", "o__calc-1 fail", "o__calc-1 success"]);
    let seen = suite.repo.read("eval/workspaces/o__calc-1/r.cheat.t01.a1/seen.txt");
    assert_eq!(seen, "0\n", "the fix is not in the repository");
    let predictions = suite.eval(&["report", "predictions", "r@oracle"]).ok().stdout;
    let prediction: Value = serde_json::from_str(predictions.trim()).unwrap();
    assert_eq!(prediction["instance_id"], "o__calc-1");
    let patch = prediction["model_patch"].as_str().unwrap();
    assert!(patch.contains("+    return a + b") && !patch.contains(".runner"), "{patch}");
    // The patch applies to the base commit, as SWE-bench applies it.
    suite.repo.write("work.patch", patch);
    let git =
        |arguments: &[&str]| run(suite.repo.command("git").arg("-C").arg("project").args(arguments)).ok();
    git(&["checkout", "-q", &base]);
    git(&["apply", "--check", "../work.patch"]);
}

#[test]
fn harbor_job_has_a_result_per_trial() {
    let suite = Suite::with_cases(&["good"]);
    suite.add("bad", "", "");
    suite.add("lost", "setup = [\"false\"]\n", "");
    suite.eval(&["run", "--run", "r", "--trials", "2", "--retries", "0"]);
    assert!(suite.eval(&["report", "harbor", "r"]).refused(2).contains("--out"));
    suite.eval(&["report", "harbor", "r", "--out", "jobs"]).ok();
    let read = |path: &str| -> Value { serde_json::from_str(&suite.repo.read(path)).unwrap() };
    let job = read("jobs/r/result.json");
    assert_eq!(job["n_total_trials"], 6);
    assert_eq!(job["stats"]["n_errored_trials"], 2, "{job}");
    let evals = &job["stats"]["evals"]["runner__case__adhoc"];
    assert_eq!(evals["n_trials"], 4, "{evals}");
    assert_eq!(evals["reward_stats"]["reward"]["1.0"].as_array().unwrap().len(), 2);
    let trial = read("jobs/r/good__r.case.t01.a1/result.json");
    assert_eq!(trial["verifier_result"]["rewards"]["reward"], 1.0);
    let lost = read("jobs/r/lost__r.case.t01.a1/result.json");
    assert_eq!(lost["verifier_result"], Value::Null);
    assert_eq!(lost["exception_info"]["exception_type"], "runner_eval.harness");
    assert!(suite.repo.path("jobs/r/good__r.case.t01.a1/agent/trajectory.json").is_file());
}

/// A root file system with a few programs of this machine and their libraries.
fn small_rootfs(folder: &Path) {
    let programs = ["sh", "git", "unshare", "prlimit", "cat", "true", "touch", "ls", "mkdir", "rm"];
    // The runner is mounted; only its libraries must be in the image.
    let list = "ldd \"$0\" | grep -o '/[^ ]*'; for name in \"$@\"; do path=$(type -P $name); echo $path; ldd $path | grep -o '/[^ ]*'; done";
    let output = Command::new("bash").arg("-c").arg(list).arg(runner()).args(programs).output().unwrap();
    for path in String::from_utf8(output.stdout).unwrap().lines() {
        let target = folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
    fs::create_dir_all(folder.join("etc")).unwrap();
    fs::write(folder.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    fs::write(folder.join("etc/image-name"), "small\n").unwrap();
}

#[test]
fn case_with_a_root_file_system_runs_in_it() {
    let suite = Suite::new();
    let look = "cat /etc/image-name > done.txt; ls / > root.txt; ls /usr/share > share.txt 2>&1; true";
    suite.add("imaged", "", &shell(look));
    let case = suite.repo.read("eval/cases/imaged/case.toml");
    let check = "[[checks]]\ntype = \"command_output\"\ncommand = [\"cat\", \"/etc/image-name\"]\nstdout = \"small\"\n";
    suite
        .repo
        .write("eval/cases/imaged/case.toml", format!("[environment]\nrootfs = \"rootfs\"\n{case}{check}"));
    let error = suite.eval(&["run"]).refused(1);
    assert!(error.contains("rootfs"), "{error}");
    small_rootfs(&suite.repo.path("eval/cases/imaged/rootfs"));
    let output = suite.eval(&["run", "--run", "r"]);
    assert_eq!(suite.outcomes(), ["imaged success"], "{}{}", output.stdout, output.stderr);
    assert_eq!(suite.repo.read("eval/workspaces/imaged_latest/done.txt"), "small\n");
    let root = suite.repo.read("eval/workspaces/imaged_latest/root.txt");
    assert!(!root.contains("opt") && root.contains("trial-home"), "only the image is visible: {root}");
    // Another image is another case.
    fs::write(suite.repo.path("eval/cases/imaged/rootfs/etc/image-name"), "other one\n").unwrap();
    suite.eval(&["run", "--run", "s"]);
    assert_eq!(suite.eval(&["gate", "r", "s", "--min-cases", "1"]).code, Some(6));
}

#[test]
fn plan_of_a_case_and_its_checks_depend_on_the_arm() {
    let suite = Suite::new();
    suite.add(
        "planned",
        "plan = \"plan\"\n",
        "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n",
    );
    suite.repo.write("eval/cases/planned/plan/plan.md", "- [ ] First\n- [ ] Second\n");
    let check = "[[check]]\nname = \"second\"\ncommand = [\"test\", \"-e\", \"second.txt\"]\n";
    suite.repo.write("eval/cases/planned/plan/nodes/second/checks.toml", check);
    suite.eval(&["run", "--run", "r", "--arm", "base", "--arm", "leaf_checks=off"]);
    let results = suite.json(&["results"]);
    let outcome = |agent: &str| {
        let all = results["results"].as_array().unwrap();
        all.iter().find(|result| result["agent"] == agent).unwrap()["outcome"].clone()
    };
    assert_eq!(outcome("case"), "stuck", "the check of the second task fails: {results}");
    assert_eq!(outcome("case+leaf_checks=off"), "success", "{results}");
    let error = suite.eval(&["run", "--arm", "leaf_checks=sometimes"]).refused(2);
    assert!(error.contains("leaf_checks"), "{error}");
}
