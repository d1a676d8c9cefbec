//! The supervisor against programs that misbehave. The tests run `examples/launch.rs`, a small runner that runs one program
//! and prints the result, because a test process cannot be killed, suspended or executed again as a supervisor.

#![expect(clippy::expect_used, reason = "an error here is a failed test")]

mod process_end;
mod process_output;
mod signals;

use std::path::PathBuf;

use testkit::processes::ProcessFixture;

/// The path of `examples/launch.rs`, which cargo builds together with the tests.
fn launch_binary() -> PathBuf {
    // The tests are in `deps` beside `examples`.
    let mut path = std::env::current_exe().expect("the path of the test binary");
    path.pop();
    path.pop();
    path.push("examples/launch");
    assert!(path.exists(), "`{}` is missing: run 'cargo build -p supervise --examples'", path.display());
    path
}

fn program(argv: &[&str]) -> ProcessFixture {
    ProcessFixture::new(launch_binary(), argv)
}

fn shell(script: &str) -> ProcessFixture {
    ProcessFixture::shell(launch_binary(), script)
}
