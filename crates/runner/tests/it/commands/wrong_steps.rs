//! Wrong first steps: each is refused before any commit, with exit code 2 and one command that fixes it; and with that command
//! it works.

use std::path::Path;
use std::process::Stdio;

use testkit::processes::wait_for;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::owned_by_nobody;

/// A wrong step, in a repository with a makefile unless `prepare` says otherwise. In all command lines, `AGENT` is a command
/// line of an agent that works, and `GOAL` the rest of a command that starts a run with it.
struct WrongStep {
    name: &'static str,
    /// A shell script that makes the repository wrong.
    prepare: &'static str,
    /// The command that is refused, behind `runner`.
    wrong: &'static str,
    /// What the refusal contains: the cause, and the command to type.
    texts: &'static [&'static str],
    /// That command, with the user's own values.
    fix: &'static str,
    /// What works then, behind `runner`.
    then: &'static str,
}

const STEPS: &[WrongStep] = &[
    WrongStep {
        name: "no goal",
        prepare: "",
        wrong: "run",
        texts: &["there is no `.runner/`", "runner run \"GOAL\""],
        fix: "",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a loop before any run",
        prepare: "",
        wrong: "loop",
        texts: &["there is no `.runner/`", "runner run \"GOAL\""],
        fix: "",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "an empty goal",
        prepare: "",
        wrong: "run ' ' GOAL",
        texts: &["the goal is empty", "runner run \"GOAL\""],
        fix: "",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "no agent",
        prepare: "",
        wrong: "run 'Make it' --yes --agent no-such-agent",
        texts: &["`no-such-agent` is not on PATH", "--agent "],
        fix: "",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "an agent without a login",
        prepare: "",
        wrong: "run 'Make it' --yes --agent codex",
        texts: &["`codex` is not logged in", "log in with 'codex login'"],
        fix: "codex login",
        then: "run 'Make it' --yes --agent codex",
    },
    WrongStep {
        name: "no test command",
        prepare: "git rm -q Makefile; git commit -qm 'no tests'",
        wrong: "run 'Make it' GOAL",
        texts: &["no test command found", "--guard \"COMMAND\""],
        fix: "",
        then: "run 'Make it' GOAL --guard true",
    },
    WrongStep {
        name: "a misspelt test command",
        prepare: "",
        wrong: "run 'Make it' GOAL --guard 'maek test'",
        texts: &["`maek` is not on PATH", "--guard \"COMMAND\""],
        fix: "",
        then: "run 'Make it' GOAL --guard 'make test'",
    },
    WrongStep {
        name: "a test command in one word",
        prepare: "runner start --goal 'Make it' && runner config set 'executor.kind=command' 'executor.command=[\"sh\", \"AGENT\"]' \
                  'guard.command=[\"make test\"]' && runner start",
        wrong: "loop",
        texts: &["`make test` is one word", "runner config set guard.command make test && runner start"],
        fix: "runner config set guard.command make test && runner start",
        then: "loop",
    },
    WrongStep {
        name: "tests that fail",
        prepare: "printf 'test:\\n\\ttest -e made\\n' > Makefile; git commit -qam red",
        wrong: "run 'Make it' GOAL",
        texts: &["`make test` already fails (exit 2)", "add --allow-red"],
        fix: "",
        then: "run 'Make it' GOAL --allow-red",
    },
    WrongStep {
        name: "uncommitted changes",
        prepare: "echo mine > mine.txt",
        wrong: "run 'Make it' GOAL",
        texts: &["uncommitted changes", "mine.txt", "git stash -u"],
        fix: "git stash -u",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a nohup.out of another command",
        prepare: "echo other > nohup.out",
        wrong: "run 'Make it' GOAL",
        texts: &["uncommitted changes", "nohup.out", "git stash -u"],
        fix: "git stash -u",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a detached HEAD on no branch",
        prepare: "git checkout -q --detach; git commit -q --allow-empty -m lost",
        wrong: "run 'Make it' GOAL",
        texts: &["HEAD is detached", "git switch -c NAME"],
        fix: "git switch -q -c work",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a loop on a detached HEAD",
        prepare: "runner run One GOAL && git checkout -q --detach main",
        wrong: "loop",
        texts: &["(run 'runner start')", "runner switch one"],
        fix: "runner switch one",
        then: "loop",
    },
    WrongStep {
        name: "a repository without a commit",
        prepare: "rm -rf .git; git init -q -b main",
        wrong: "run 'Make it' GOAL",
        texts: &["no commit yet", "git add -A && git commit --allow-empty -m root"],
        fix: "git add -A && git commit -q --allow-empty -m root",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "no repository",
        prepare: "rm -rf .git",
        wrong: "run 'Make it' GOAL",
        texts: &["not in a git repository", "git init && git commit --allow-empty -m root"],
        fix: "git init -q && git add -A && git commit -q --allow-empty -m root",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "inside the git folder",
        prepare: "",
        wrong: "-C .git/refs run 'Make it' GOAL",
        texts: &["is inside the repository's git folder", "cd "],
        fix: "",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a bare repository",
        prepare: "git clone -q --bare . ../bare.git",
        wrong: "-C ../bare.git run 'Make it' GOAL",
        texts: &["is a bare repository", "git clone REPOSITORY"],
        fix: "git clone -q ../bare.git ../clone",
        then: "-C ../clone run 'Make it' GOAL",
    },
    WrongStep {
        name: "on main with a run elsewhere",
        prepare: "runner run One GOAL && git switch -q main",
        wrong: "loop",
        texts: &["the current branch is `main`", "(run 'runner start')", "runner switch one"],
        fix: "runner switch one",
        then: "loop",
    },
    WrongStep {
        name: "another branch on top of a run",
        prepare: "runner run One GOAL && git switch -q -c feature",
        wrong: "loop",
        texts: &["the current branch is `feature`", "runner switch one"],
        fix: "runner switch one",
        then: "loop",
    },
    WrongStep {
        name: "a new goal on the branch of a run",
        prepare: "runner run One GOAL",
        wrong: "run Two GOAL",
        texts: &["the branch of run `one` is checked out", "git switch main"],
        fix: "git switch -q main",
        then: "run Two GOAL",
    },
    WrongStep {
        name: "a merge in progress",
        prepare: "git switch -q -c other; echo 1 > x; git add x; git commit -qm 1; git switch -q main; echo 2 > x; git add x; \
                  git commit -qm 2; git merge -q other || true",
        wrong: "run 'Make it' GOAL",
        texts: &["a merge is in progress", "'git merge --abort'"],
        fix: "git merge --abort",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a rebase in progress",
        prepare: "git switch -q -c other; echo 1 > x; git add x; git commit -qm 1; git switch -q main; echo 2 > x; git add x; \
                  git commit -qm 2; git rebase -q other || true",
        wrong: "run 'Make it' GOAL",
        texts: &["a rebase is in progress", "'git rebase --abort'"],
        fix: "git rebase --abort",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "the template as the goal",
        prepare: "runner start && runner config set 'executor.kind=command' 'executor.command=[\"sh\", \"AGENT\"]' && runner start",
        wrong: "loop",
        texts: &["GOAL.md still holds the template", "runner start --goal \"GOAL\""],
        fix: "runner start --goal 'Make it'",
        then: "loop",
    },
    WrongStep {
        name: "an unknown key in the configuration",
        prepare: "runner init; echo 'nonsense = 1' > .runner/state/config.toml",
        wrong: "run 'Make it' GOAL",
        texts: &["`nonsense` is not a known key", "runner init --force"],
        fix: "runner init --force && rm .runner/state/*.bak",
        then: "run 'Make it' GOAL",
    },
    WrongStep {
        name: "a scenario that does not exist",
        prepare: "runner start --goal 'Make it' && runner config set executor.kind=script executor.scenario=none.toml && runner start",
        wrong: "loop",
        texts: &[
            "there is no scenario `none.toml`",
            "runner config set executor.scenario FILE && runner start",
        ],
        fix: "printf '[[session]]\\nanswer = { status = \"done\", summary = \"did it\" }\\n[[session.do]]\\nwrite = { path = \"made\", text = \"1\" }\\n' \
              > s.toml; git add s.toml; git commit -qm scenario; runner config set executor.scenario s.toml && runner start",
        then: "loop",
    },
    WrongStep {
        name: "an id that is taken",
        prepare: "runner run One GOAL && git switch -q main",
        wrong: "run Two GOAL --id one",
        texts: &["run `one` already exists", "--id"],
        fix: "",
        then: "run Two GOAL --id two",
    },
];

/// A repository in which steps go wrong, with an agent and the programs that the fixes need.
struct Bench {
    repo: TestRepo,
    agent: String,
}

impl Bench {
    fn new() -> Self {
        let repo = TestRepo::empty(RUNNER);
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("Makefile", "test:\n\ttrue\n");
        repo.commit_all("root");
        let agent = repo.outside().join("agent.sh");
        let answer = "date +%N > made; printf '{\"status\": \"done\", \"summary\": \"did it\"}' > \"$RUNNER_OUTPUT\"\n";
        std::fs::write(&agent, answer).unwrap();
        let bin = repo.outside().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(RUNNER, bin.join("runner")).unwrap();
        // An agent that can only log in.
        let codex = "#!/bin/sh\ncase \"$1\" in login) mkdir -p \"$HOME/.codex\"; echo '{\"OPENAI_API_KEY\": \"k\"}' > \"$HOME/.codex/auth.json\" ;; *) exit 1 ;; esac\n";
        std::fs::write(bin.join("codex"), codex).unwrap();
        run(repo.command("chmod").arg("755").arg(bin.join("codex"))).ok();
        Self { agent: agent.display().to_string(), repo }
    }

    fn shell(&self, line: &str) -> RunOutput {
        let goal = format!("--yes --agent 'sh {}'", self.agent);
        // A hint shows GOAL in quotes.
        let line = line.replace(" GOAL", &format!(" {goal}")).replace("AGENT", &self.agent);
        let path =
            format!("{}:{}", self.repo.outside().join("bin").display(), std::env::var("PATH").unwrap());
        let mut command = self.repo.command("sh");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@localhost");
        }
        run(command.args(["-c", &line]).env("PATH", path))
    }

    fn references(&self) -> String {
        self.shell("git for-each-ref; git rev-parse HEAD; git symbolic-ref -q HEAD").stdout
    }
}

fn assert_step(step: &WrongStep) {
    let bench = Bench::new();
    let prepared = bench.shell(step.prepare);
    let before = bench.references();
    let refused = bench.shell(&format!("runner {}", step.wrong));
    let context = format!("{}\n{prepared:?}\n{}\n{}", step.name, refused.stdout, refused.stderr);
    assert_eq!(refused.code, Some(2), "{context}");
    for text in step.texts {
        assert!(refused.stderr.contains(text), "{text}: {context}");
    }
    assert!(refused.stderr.contains("hint: "), "{context}");
    assert_eq!(bench.references(), before, "{context}: nothing is committed or checked out");
    let fixed = bench.shell(step.fix);
    assert_eq!(fixed.code, Some(0), "{context}\n{fixed:?}");
    let then = bench.shell(&format!("runner {}", step.then));
    if step.then.contains("codex") {
        assert!(!then.stderr.contains("not logged in"), "{context}\n{then:?}");
    } else {
        assert_eq!(then.code, Some(0), "{context}\n{}\n{}", then.stdout, then.stderr);
    }
}

#[test]
fn every_wrong_step_is_refused_and_its_hint_helps() {
    let names: std::collections::BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
    assert!(names.len() == STEPS.len() && STEPS.len() >= 20, "{}", STEPS.len());
    let (one, other) = STEPS.split_at(STEPS.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| one.iter().for_each(assert_step));
        other.iter().for_each(assert_step);
    });
}

#[test]
fn second_loop_is_refused_until_the_first_one_stops() {
    let bench = Bench::new();
    // The agent may only write in the work tree.
    let (begun, go) = (bench.repo.path("begun"), bench.repo.path("go"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; printf '{{\"status\": \"retry\", \"summary\": \"no\"}}' > \"$RUNNER_OUTPUT\"\n",
        begun.display(),
        go.display()
    );
    std::fs::write(&bench.agent, script).unwrap();
    let agent = format!("sh {}", bench.agent);
    let mut first = bench.repo.runner_command(&["run", "Make it", "--yes", "--agent", &agent]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the agent", || begun.exists());
    let before = bench.references();
    let refused = bench.shell("runner loop");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("a loop is already running here (pid "), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: to stop it: runner stop"), "{}", refused.stderr);
    assert_eq!(bench.references(), before);
    bench.shell("runner stop").ok();
    std::fs::write(&go, "").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    std::fs::write(
        &bench.agent,
        "echo 1 > made; printf '{\"status\": \"done\", \"summary\": \"x\"}' > \"$RUNNER_OUTPUT\"\n",
    )
    .unwrap();
    bench.shell("runner loop").ok();
}

#[test]
fn folder_that_may_not_be_written_is_refused() {
    let bench = Bench::new();
    let repo = &bench.repo;
    let as_nobody = |line: &str| {
        let mut command = repo.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", line]);
        run(&mut command)
    };
    let wrong = format!("{RUNNER} run 'Make it' --yes --agent 'sh {}'", bench.agent);
    owned_by_nobody(repo, |repo| {
        let git_folder = repo.path(".git").canonicalize().unwrap();
        run(repo.command("chmod").arg("a-w").arg(&git_folder)).ok();
        let refused = as_nobody(&wrong);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let fix = format!("chmod u+w {}", git_folder.display());
        assert!(
            refused.stderr.contains("you may not write to") && refused.stderr.contains(&fix),
            "{}",
            refused.stderr
        );
        as_nobody(&fix).ok();
        as_nobody(&wrong).ok();
    });
}

#[test]
fn refused_start_leaves_what_the_user_wrote() {
    let bench = Bench::new();
    bench.repo.write("Makefile", "test:\n\tfalse\n");
    bench.repo.commit_all("red");
    bench.shell("runner run 'Make it' GOAL");
    assert!(!bench.repo.path(".runner").exists(), "a folder of ours is gone again");
    assert_eq!(bench.repo.git(&["status", "--porcelain"]), "");
    // A configuration of the user's that is not committed is kept, on the branch of the run.
    bench.shell("runner init && runner config set max_iterations 7").ok();
    let refused = bench.shell("runner run 'Make it' GOAL");
    assert!(refused.stderr.contains("runner loop --allow-red"), "{}", refused.stderr);
    assert_eq!(bench.repo.git(&["branch", "--show-current"]), "runner/make-it");
    assert!(Path::new(&bench.repo.path(".runner/state/config.toml")).exists());
    assert!(bench.repo.read(".runner/state/config.toml").contains("max_iterations = 7"));
}
