//! Named points at which a test may end the process, as a power cut or `kill -9` would.

/// Ends the process here if a test asked for it, without unwinding and without clean-up.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &str) {
    if std::env::var_os("RUNNER_TEST_CRASH_AT").is_some_and(|wanted| wanted == name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// In a shipped binary there are no such points.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn reach(_name: &str) {}
