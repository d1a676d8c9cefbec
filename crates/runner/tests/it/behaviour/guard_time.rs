//! The guard gets the time that the session did not use, however long the runner itself takes or is suspended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const LIMIT: Duration = Duration::from_secs(6);

/// A run whose session, or the git that stores its work, waits for the file `go`.
struct HeldRun {
    repo: TestRepo,
    runner: Child,
}

impl HeldRun {
    fn in_session() -> Self {
        let wait = "touch $AROUND/held; while ! test -e $AROUND/go; do sleep 0.01; done";
        Self::start(&format!("echo work > work; answer done; {wait}"))
    }

    /// Many files, or a slow disk, have the same effect.
    fn between_session_and_guard() -> Self {
        Self::start("echo work > work; answer done; touch $AROUND/ended")
    }

    fn start(agent: &str) -> Self {
        let keys = format!("iteration_timeout_secs = {}\nidle_timeout_secs = 0", LIMIT.as_secs());
        let repo = RunBuilder::new(RUNNER).agent(agent).keys(&keys).start();
        let bin = repo.outside().join("bin");
        fs::create_dir(&bin).unwrap();
        let real = run(repo.command("sh").args(["-c", "command -v git"])).ok().stdout;
        let around = repo.outside().display();
        let script = format!(
            "#!/bin/sh\nif test -e {around}/ended; then touch {around}/held; \
             while ! test -e {around}/go; do sleep 0.01; done; fi\nexec {} \"$@\"\n",
            real.trim_end()
        );
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = repo.runner_command(&["step"]);
        let runner = command.env("PATH", path).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the file `held`", || repo.outside().join("held").exists());
        Self { repo, runner }
    }

    fn signal(&self, name: &str) {
        let process = self.runner.id().to_string();
        run(self.repo.command("kill").args([&format!("-{name}"), &process])).ok();
    }

    /// As Ctrl-Z does.
    fn suspend(&self) {
        self.signal("TSTP");
        let status = format!("/proc/{}/status", self.runner.id());
        let is_stopped = || fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tT"));
        wait_for("the runner to be suspended", is_stopped);
    }

    /// Lets more time pass than the iteration has, then lets the run continue; its guard must succeed.
    fn assert_guard_has_time(mut self) {
        let since = Instant::now();
        wait_for("more time than the limit", || since.elapsed() > LIMIT);
        fs::write(self.repo.outside().join("go"), "").unwrap();
        self.signal("CONT");
        assert!(self.runner.wait().unwrap().success());
        assert_eq!(self.repo.outcomes(), ["passed"]);
        assert_sound(&self.repo);
    }
}

#[test]
fn guard_has_time_after_a_slow_snapshot() {
    HeldRun::between_session_and_guard().assert_guard_has_time();
}

#[test]
fn guard_has_time_after_a_suspended_session() {
    let run = HeldRun::in_session();
    run.suspend();
    run.assert_guard_has_time();
}

#[test]
fn guard_has_time_after_a_suspension_between_session_and_guard() {
    let run = HeldRun::between_session_and_guard();
    run.suspend();
    run.assert_guard_has_time();
}
