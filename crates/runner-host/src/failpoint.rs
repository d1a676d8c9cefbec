//! Named points at which a test may end the process, as a power cut or `kill -9` would, or fill the disk.

/// Ends the process here if a test asked for it, without unwinding and without clean-up; or lets nothing be written
/// any more from here on, neither by this process nor by git.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &str) {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
    let is_wanted = |variable| std::env::var_os(variable).is_some_and(|wanted| wanted == name);
    if is_wanted("RUNNER_TEST_CRASH_AT") {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    if is_wanted("RUNNER_TEST_FULL_AT") {
        let _ = setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

/// In a shipped binary there are no such points.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn reach(_name: &str) {}
