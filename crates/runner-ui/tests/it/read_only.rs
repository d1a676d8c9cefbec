//! The server disturbs nothing: it writes nowhere in the repository, and does nothing while nothing happens.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};

use crate::server::{Server, finished_run, runner};

/// What an agent and a guard do in a run that has something to show all the time.
const BUSY: &str = "case $RUNNER_ITER in\n\
     0001) split ;;\n\
     0002) i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i + 1)); sleep 0.01; done; echo bad > a; answer done ;;\n\
     *) echo good > a; echo b > b; answer done ;;\nesac";

/// The calls that open a file so that it could be changed, make or remove one, or lock one.
const CALLS: &str = "openat,open,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,\
    truncate,ftruncate,link,linkat,symlink,symlinkat,chmod,fchmodat,utimensat,flock,mknodat";

/// Who traces a process.
fn tracer(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
    tracer.trim().parse().unwrap()
}

/// Lines of `strace` that tell of a change, or of an attempt at one, beneath a folder.
fn writes<'t>(trace: &'t str, folder: &str) -> Vec<&'t str> {
    let is_write = |line: &&str| {
        let may_write = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"];
        let writes = !line.contains("open") || may_write.iter().any(|flag| line.contains(flag));
        // A path that is not absolute begins at a handle, whose own path is told with it.
        let path = line.split('"').nth(1).filter(|path| path.starts_with('/')).unwrap_or(line);
        writes && path.contains(folder)
    };
    trace.lines().filter(is_write).collect()
}

#[test]
fn on_a_busy_run_no_file_of_the_repository_is_opened_for_writing() {
    assert!(
        Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()),
        "`strace` is needed to see this: apt-get install strace"
    );
    let sandbox = RunBuilder::new(&runner())
        .agent(BUSY)
        .guard("grep -q bad a 2>/dev/null && { echo 'error: a is bad'; exit 1; }; exit 0")
        .start();
    let trace = sandbox.outside().join("trace");
    // With full paths of handles (-y), of every thread and every program that is started (-f); beside it (-D), so that
    // the server ends like any other.
    let words =
        ["-D", "-f", "-y", "-e", "signal=none", "-e", &format!("trace={CALLS}"), "-o"].map(str::to_owned);
    let words = [&words[..], &[trace.display().to_string()]].concat();
    let server = Server::beneath("strace", &words, sandbox.root());
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
    assert_eq!(server.get("/api/verify").ok()["verdict"], "held");
    crate::server::next_event(&mut stream, "tree_changed");
    let tracer = tracer(server.pid());
    drop(server);
    wait_for("the end of the trace", || !Path::new(&format!("/proc/{tracer}")).exists());
    let text = String::from_utf8_lossy(&fs::read(&trace).unwrap()).into_owned();
    let root = sandbox.root().display().to_string();
    assert!(text.lines().filter(|line| line.contains(&root)).count() > 100, "the trace saw what was read");
    let found = writes(&text, &root);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_trace_with_a_write_in_it_would_be_noticed() {
    let lines = "7 openat(AT_FDCWD, \"/r/a\", O_RDONLY|O_CLOEXEC) = 3</r/a>\n\
        7 openat(3</r>, \"b\", O_WRONLY|O_CREAT, 0666) = 4</r/b>\n\
        7 openat(AT_FDCWD</r>, \"/dev/null\", O_RDWR) = 4</dev/null>\n\
        7 unlink(\"/r/a\") = 0\n7 flock(5</r/lock>, LOCK_SH) = 0\n";
    assert_eq!(writes(lines, "/r").len(), 3);
}

/// The time that a process has had of the processors, in ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn on_an_idle_run_the_server_uses_no_time() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let _listener = server.listen(&[]);
    server.get("/api/snapshot").ok();
    server.iteration(3, "/log/guard").ok();
    // What it was asked for and the looks after its start are over by now.
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks(server.pid());
    std::thread::sleep(Duration::from_secs(4));
    let used = ticks(server.pid()) - before;
    assert!(used <= 1, "{used} hundredths of a second in four seconds in which nothing happened on {RUN}");
}
