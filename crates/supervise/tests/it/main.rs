//! The supervisor against programs that misbehave. The tests run `examples/launch.rs`, a small runner that runs one program
//! and prints the result, because a test process cannot be killed, suspended or executed again as a supervisor.

mod process_end;
mod process_output;
mod signals;

use std::path::PathBuf;

use testkit::processes::ProcessFixture;

/// The path of `examples/launch.rs`, which cargo builds together with the tests.
fn launch_binary() -> PathBuf {
    let test_binary = std::env::current_exe().unwrap();
    let target = test_binary.ancestors().nth(2).unwrap();
    let path = target.join("examples/launch");
    assert!(path.exists(), "`{}` is missing: run 'cargo build -p supervise --examples'", path.display());
    path
}

fn program(argv: &[&str]) -> ProcessFixture {
    ProcessFixture::new(launch_binary(), argv)
}

fn shell(script: &str) -> ProcessFixture {
    ProcessFixture::shell(launch_binary(), script)
}
