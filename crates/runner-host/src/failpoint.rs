//! Failpoints: named places where a test can kill the process, as `kill -9` or a power cut would, or fill the disk.

/// If the environment selects this failpoint, kills the process without any clean-up, or makes every later write of this
/// process and of git fail.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &str) {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
    let is_selected = |variable| std::env::var_os(variable).is_some_and(|selected| selected == name);
    if is_selected("RUNNER_TEST_CRASH_AT") {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    if is_selected("RUNNER_TEST_FULL_AT") {
        let _ = setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

/// Release builds have no failpoints.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn reach(_name: &str) {}
