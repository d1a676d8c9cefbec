//! The server does not interfere: it writes nothing in the repository, and uses no CPU while nothing happens.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;

use crate::server::{Server, finished_run, runner};

/// An agent that produces output and changes all the time.
const BUSY: &str = "case $RUNNER_ITER in\n\
     0001) split ;;\n\
     0002) i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i + 1)); sleep 0.01; done; echo bad > a; answer done ;;\n\
     *) echo good > a; echo b > b; answer done ;;\nesac";

/// The system calls that can open a file for writing, create or remove one, or lock one.
const SYSCALLS: &str = "openat,open,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,\
    truncate,ftruncate,link,linkat,symlink,symlinkat,chmod,fchmodat,utimensat,flock,mknodat";

/// The process that traces another.
fn tracer(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
    tracer.trim().parse().unwrap()
}

/// The lines of a trace with a write, or an attempt at one, below a folder.
fn writes<'t>(trace: &'t str, folder: &str) -> Vec<&'t str> {
    let is_write = |line: &&str| {
        let may_write = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"];
        let writes = !line.contains("open") || may_write.iter().any(|flag| line.contains(flag));
        // A relative path starts at a handle, whose own path is part of the line.
        let path = line.split('"').nth(1).filter(|path| path.starts_with('/')).unwrap_or(line);
        writes && path.contains(folder)
    };
    trace.lines().filter(is_write).collect()
}

#[test]
fn no_file_of_a_busy_repository_is_opened_for_writing() {
    assert!(
        Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()),
        "this test needs `strace`: apt-get install strace"
    );
    let sandbox = RunBuilder::new(&runner())
        .agent(BUSY)
        .guard("grep -q bad a 2>/dev/null && { echo 'error: a is bad'; exit 1; }; exit 0")
        .start();
    let trace = sandbox.outside().join("trace");
    // With the paths of handles (-y), of all threads and child processes (-f), and as a detached tracer (-D), so that the
    // server is this process's child.
    let options =
        ["-D", "-f", "-y", "-e", "signal=none", "-e", &format!("trace={SYSCALLS}"), "-o"].map(str::to_owned);
    let args = [&options[..], &[trace.display().to_string()]].concat();
    let server = Server::under("strace", &args, sandbox.root());
    let mut stream = server.listen(&[]);
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    let paths = [
        "/api/snapshot",
        "/api/iterations",
        "/api/tree?slim=1",
        "/api/tree/a",
        "/api/runs",
        "/api/run-state",
    ];
    wait_for("the run's end", || {
        paths.iter().for_each(|path| drop(server.get(path)));
        for rest in ["", "/diff", "/diff/file?path=a", "/log/guard", "/log/events", "/guard.log"] {
            drop(server.iteration(2, rest));
        }
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(server.get("/api/verify").ok()["verdict"], "verified");
    crate::server::next_event(&mut stream, "tree_changed");
    let tracer = tracer(server.pid());
    drop(server);
    wait_for("the end of the trace", || !Path::new(&format!("/proc/{tracer}")).exists());
    let text = String::from_utf8_lossy(&fs::read(&trace).unwrap()).into_owned();
    let root = sandbox.root().display().to_string();
    assert!(text.lines().filter(|line| line.contains(&root)).count() > 100, "the trace contains the reads");
    let writes = writes(&text, &root);
    assert!(writes.is_empty(), "{}", writes.join("\n"));
}

#[test]
fn writes_in_a_trace_are_recognized() {
    let lines = "7 openat(AT_FDCWD, \"/r/a\", O_RDONLY|O_CLOEXEC) = 3</r/a>\n\
        7 openat(3</r>, \"b\", O_WRONLY|O_CREAT, 0666) = 4</r/b>\n\
        7 openat(AT_FDCWD</r>, \"/dev/null\", O_RDWR) = 4</dev/null>\n\
        7 unlink(\"/r/a\") = 0\n7 flock(5</r/lock>, LOCK_SH) = 0\n";
    assert_eq!(writes(lines, "/r").len(), 3);
}

/// The CPU time of a process, in ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn idle_server_uses_no_cpu() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let _listener = server.listen(&[]);
    server.get("/api/snapshot").ok();
    server.iteration(3, "/log/guard").ok();
    // The requests and the fingerprints after the start are done by then.
    std::thread::sleep(Duration::from_millis(500));
    let before = cpu_ticks(server.pid());
    std::thread::sleep(Duration::from_secs(4));
    let used = cpu_ticks(server.pid()) - before;
    assert!(used <= 1, "{used} ticks of 10 ms in four idle seconds");
}
