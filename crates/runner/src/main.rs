//! The `runner` command.

fn main() -> std::process::ExitCode {
    runner::main()
}
