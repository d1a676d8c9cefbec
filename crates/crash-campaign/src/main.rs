//! The program of the crash campaign; everything is in the library, which is empty on other systems.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    crash_campaign::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[expect(clippy::print_stdout, reason = "this program has no other output")]
fn main() {
    println!("crash campaign SKIPPED: its injector needs Linux on x86-64");
}
