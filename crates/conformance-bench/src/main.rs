//! The program of the conformance bench; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    conformance_bench::main()
}
