//! The jobs of clusters, executed as the cluster would execute them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::test_repo::{RunOutput, run};

use crate::{Suite, runner};

/// The programs of an image: copies outside of this repository, because inside of it `runner-eval` builds the runner first.
fn make_image(suite: &Suite) {
    fs::create_dir_all(suite.repo.path("image")).unwrap();
    for program in [PathBuf::from(env!("CARGO_BIN_EXE_runner-eval")), runner()] {
        fs::copy(&program, suite.repo.path("image").join(program.file_name().unwrap())).unwrap();
    }
}

fn image_path(suite: &Suite) -> String {
    format!("{}:{}", suite.repo.path("image").display(), std::env::var("PATH").unwrap())
}

/// Executes the container of a pod here.
fn run_pod(suite: &Suite, job: &Value, index: Option<u32>) -> RunOutput {
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> =
        container["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let (program, arguments) = words.split_first().unwrap();
    let program = match *program {
        "runner-eval" => suite.repo.path("image/runner-eval").display().to_string(),
        other => other.to_owned(),
    };
    let mut command = suite.repo.command(&program);
    command.args(arguments).env("PATH", image_path(suite));
    for variable in container["env"].as_array().unwrap() {
        command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
    }
    if let Some(index) = index {
        command.env("JOB_COMPLETION_INDEX", index.to_string());
    }
    run(&mut command)
}

#[test]
fn kubernetes_pods_complete_the_run_and_the_merge_job_ends() {
    let suite = Suite::with_cases(&["a", "b", "c"]);
    suite.add("unexpected", "expect = \"success\"\n", "");
    make_image(&suite);
    // A program in the place of kubectl that keeps what it is given.
    let bin = suite.repo.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let kubectl = bin.join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\n[ \"$1\" = create ] || exit 3\ncp \"$3\" \"$(dirname \"$0\")/created.json\"\necho job/x created\n").unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let mount = suite.repo.path("").display().to_string();
    let arguments = [
        "submit",
        "k8s",
        "--run",
        "p",
        "--trials",
        "2",
        "--partitions",
        "3",
        "--image",
        "x",
        "--mount",
        &mount,
        "--steal",
    ];
    let mut submit = suite.command(&arguments);
    submit.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    run(&mut submit).ok();
    let jobs: Value = serde_json::from_str(&suite.repo.read("bin/created.json")).unwrap();
    let (job, merge) = (&jobs["items"][0], &jobs["items"][1]);
    // The pod of index 1 is lost; its replacement does its work.
    let first = run_pod(&suite, job, Some(0));
    let exit = i64::from(first.code.unwrap());
    assert_eq!(exit, 1, "a case that ends in another way than expected: {}", first.stdout);
    let rules = job["spec"]["podFailurePolicy"]["rules"].as_array().unwrap();
    let finals = rules[0]["onExitCodes"]["values"].as_array().unwrap();
    assert!(finals.contains(&exit.into()), "the pod is not retried for that");
    for index in [2, 1] {
        run_pod(&suite, job, Some(index));
    }
    let merged = run_pod(&suite, merge, None).ok();
    assert!(merged.stdout.contains("results=8") && merged.stdout.contains("missing=0"), "{}", merged.stdout);
    // The same command submits again, and nothing is repeated.
    run(suite
        .command(&arguments)
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())))
    .ok();
    let again = run_pod(&suite, job, Some(0));
    assert!(!again.stdout.contains("event=trial"), "{}", again.stdout);
}

/// The commands of a job in a workflow, without those that install programs.
fn workflow_commands(workflow: &str, job: &str, next: Option<&str>) -> Vec<String> {
    let text = workflow.split_once(&format!("\n  {job}:\n")).unwrap().1;
    let text = next.map_or(text, |next| text.split_once(&format!("\n  {next}:\n")).unwrap().0);
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("- run: "));
    let commands = lines.map(|line| serde_json::from_str::<String>(line).unwrap());
    commands.filter(|command| command.starts_with("runner eval")).collect()
}

/// Executes a command of a workflow on a machine, which is a folder.
fn on_machine(suite: &Suite, machine: &str, command: &str) -> RunOutput {
    let folder = suite.repo.path(machine);
    let mut shell: Command = suite.repo.command("bash");
    shell.args(["-e", "-c", command]).current_dir(folder).env("PATH", image_path(suite));
    run(&mut shell)
}

fn copy(suite: &Suite, from: &str, to: &str) {
    let target = suite.repo.path(to);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    run(suite.repo.command("cp").args(["-r", from, to])).ok();
}

#[test]
fn merge_job_ends_although_results_are_missing() {
    let suite = Suite::with_cases(&["a", "b"]);
    make_image(&suite);
    let mount = suite.repo.path("").display().to_string();
    let submit =
        ["submit", "k8s", "--run", "p", "--image", "x", "--mount", &mount, "--budget-usd", "3", "--dry-run"];
    let dry = suite.json(&submit);
    let jobs: Value = serde_json::from_str(dry["files"][0]["text"].as_str().unwrap()).unwrap();
    let pod = jobs["items"][0]["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
    assert!(
        pod.contains("\"--budget-usd\",\"3\""),
        "machines with a shared folder get the whole budget: {pod}"
    );
    suite.eval(&["plan", "--run", "p"]).ok();
    suite.eval(&["run", "a", "--run", "q"]).ok();
    let mut words: Vec<String> = Vec::new();
    let merge = &jobs["items"][1]["spec"]["template"]["spec"]["containers"][0]["command"];
    words.extend(merge.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()));
    let idle: u32 = words.last().unwrap().parse().unwrap();
    assert!(idle > 3600, "longer than a trial: {idle}");
    *words.last_mut().unwrap() = "2".to_owned();
    let mut command = suite.repo.command(&words[0]);
    command.args(&words[1..]).env("PATH", image_path(&suite)).env("EVAL_MERGE_POLL_SECS", "1");
    let output = run(&mut command);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(output.stdout.contains("missing=2"), "{}", output.stdout);
}

#[test]
fn machines_without_a_shared_folder_share_the_budget() {
    let suite = Suite::with_cases(&["a"]);
    let budget = ["--budget-usd", "2", "--budget-tokens", "1001", "--partitions", "4"];
    let dry =
        |engine: &[&str]| suite.eval(&[&["submit"], engine, &["--run", "p", "--dry-run"], &budget].concat());
    let actions = dry(&["actions"]).ok().stdout;
    assert!(actions.contains("--budget-usd 0.5 --budget-tokens 250"), "{actions}");
    assert!(
        dry(&["actions", "--steal"]).refused(2).contains("--steal needs a folder that all machines share")
    );
    let slurm = dry(&[
        "slurm",
        "--steal",
        "--account",
        "lab",
        "--memory",
        "4G",
        "--constraint",
        "gpu",
        "--cpus",
        "2",
    ])
    .ok()
    .stdout;
    assert!(slurm.contains("--budget-usd 2 --budget-tokens 1001 --steal"), "{slurm}");
    for line in ["--account=lab", "--mem=4G", "--constraint=gpu", "--cpus-per-task=2"] {
        assert_eq!(slurm.matches(&format!("#SBATCH {line}\n")).count(), 2, "{line}: {slurm}");
    }
}

#[test]
fn workflow_of_github_works_on_machines_without_a_shared_folder() {
    let suite = Suite::with_cases(&["a", "b", "c"]);
    suite
        .eval(&[
            "submit",
            "actions",
            "--run",
            "p",
            "--partitions",
            "2",
            "--trials",
            "2",
            "--secret",
            "SOME_KEY",
            "--setup",
            "./install it",
        ])
        .ok();
    let workflow = suite.repo.read(".github/workflows/eval.yml");
    assert!(workflow.contains("SOME_KEY: ${{ secrets.SOME_KEY }}"), "{workflow}");
    assert!(workflow.contains("- run: \"./install it\"") && !workflow.contains("|| true"), "{workflow}");
    make_image(&suite);
    for machine in ["planner", "one", "two", "merger"] {
        copy(&suite, "eval/cases", &format!("{machine}/eval/cases"));
    }
    for command in workflow_commands(&workflow, "plan", Some("trials")) {
        on_machine(&suite, "planner", &command).ok();
    }
    for (machine, partition) in [("one", "1"), ("two", "2")] {
        copy(&suite, "planner/eval/results/_runs", &format!("{machine}/eval/results/_runs"));
        for command in workflow_commands(&workflow, "trials", Some("merge")) {
            on_machine(&suite, machine, &command.replace("${{ matrix.partition }}", partition)).ok();
        }
        copy(&suite, &format!("{machine}/eval/results"), &format!("merger/shares/eval-share-{partition}"));
    }
    copy(&suite, "planner/eval/results/_runs", "merger/eval/results/_runs");
    let commands = workflow_commands(&workflow, "merge", None);
    let merged = on_machine(&suite, "merger", &commands[0]).ok();
    assert!(merged.stdout.contains("results=6") && merged.stdout.contains("missing=0"), "{}", merged.stdout);
    on_machine(&suite, "merger", &commands[1]).ok();
    assert!(suite.repo.read("merger/report.html").contains("<h1>Evaluation p</h1>"));
}

#[test]
fn submitted_trials_require_their_sandbox_and_get_the_provider_check() {
    let suite = Suite::with_cases(&["a"]);
    let dry = |engine: &[&str]| {
        let check = ["--run", "p", "--dry-run", "--provider-check", "curl -f x"];
        suite.eval(&[&["submit"], engine, &check].concat()).ok().stdout
    };
    let options = "--isolation required --provider-check 'curl -f x'";
    for engine in ["slurm", "actions"] {
        let text = dry(&[engine]);
        assert!(text.contains(options), "{text}");
    }
    assert!(dry(&["actions"]).contains("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"));
    assert!(dry(&["slurm", "--isolation", "off"]).contains("--isolation off"));
    let submit = ["submit", "k8s", "--run", "p", "--image", "x", "--user", "7", "--dry-run"];
    let pod = |more: &[&str]| {
        let dry = suite.json(&[&submit, more].concat());
        let jobs: Value = serde_json::from_str(dry["files"][0]["text"].as_str().unwrap()).unwrap();
        jobs["items"][0]["spec"]["template"]["spec"].clone()
    };
    let default = pod(&[]);
    let command = default["containers"][0]["command"].to_string();
    assert!(command.contains("\"--isolation\",\"required\""), "{default}");
    assert_eq!(default["containers"][0]["securityContext"]["seccompProfile"]["type"], "Unconfined");
    assert_eq!((&default["securityContext"]["runAsUser"], &default["hostUsers"]), (&7.into(), &Value::Null));
    let unmasked = pod(&["--unmask-proc", "--seccomp", "RuntimeDefault"]);
    let security = &unmasked["containers"][0]["securityContext"];
    assert_eq!((&security["procMount"], &unmasked["hostUsers"]), (&"Unmasked".into(), &false.into()));
    assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(pod(&["--privileged"])["containers"][0]["securityContext"]["privileged"], true);
}
