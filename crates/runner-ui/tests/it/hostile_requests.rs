//! Whoever asks, and whatever an agent wrote: refused or bounded, and the server goes on.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::run_builder::RUN;
use testkit::test_repo::run;

use crate::server::{Server, finished_run};

const ROUTES: &[&str] = &[
    "/",
    "/assets/app.js",
    "/healthz",
    "/events",
    "/nowhere",
    "/api/snapshot",
    "/api/tree",
    "/api/tree/a",
    "/api/run-state",
    "/api/runs",
    "/api/search?q=a",
    "/api/iterations",
    "/api/iterations/demo/0002",
    "/api/iterations/demo/0002/guard.log",
    "/api/iterations/demo/0002/log/guard",
    "/api/iterations/demo/0002/diff",
];

#[test]
fn every_route_refuses_foreign_hosts_origins_and_sites() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let own = format!("http://127.0.0.1:{}", server.port);
    for route in ROUTES {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost@evil.example"] {
            assert_eq!(server.ask("GET", route, &[("Host", host)]).status, 403, "{route} {host}");
        }
        for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"] {
            assert_eq!(server.ask("GET", route, &[("Origin", origin)]).status, 403, "{route} {origin}");
        }
        let foreign =
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "script")];
        assert_eq!(server.ask("GET", route, &foreign).status, 403, "{route}");
    }
    let answer = server.ask("GET", "/api/tree", &[("Origin", &own)]);
    assert_eq!(answer.status, 200);
    assert!(!answer.head.contains("access-control"), "{}", answer.head);
    assert_eq!(server.raw("GET /api/tree HTTP/1.0\r\n\r\n").status, 403);
    let twice = format!(
        "GET http://evil.example/api/tree HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
        server.port
    );
    assert_eq!(server.raw(&twice).status, 403);
}

#[test]
fn every_answer_carries_the_strict_headers() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let routes = ROUTES.iter().filter(|route| **route != "/events");
    for answer in routes.map(|route| server.get(route)).chain([server.ask("POST", "/", &[])]) {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
    }
}

#[test]
fn nothing_but_reading_is_possible() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
        let path = if method == "CONNECT" { "127.0.0.1:1" } else { "/api/tree" };
        let answer = server.ask(method, path, &[("Content-Length", "0")]);
        assert!(matches!(answer.status, 400 | 405), "{method}: {}", answer.head);
    }
    assert_eq!(server.get("/api/tree").status, 200);
}

#[test]
fn no_path_leads_out_of_an_iteration() {
    let sandbox = finished_run();
    fs::write(sandbox.outside().join("secret"), "secret\n").unwrap();
    let server = Server::on(sandbox.root());
    let tricks = [
        "/api/iterations/../../../etc/passwd",
        "/api/iterations/..%2f..%2f../0001",
        "/api/iterations/%2e%2e/0001",
        "/api/iterations/demo/..%2f0001",
        "/api/iterations/demo/0001/..%2f..%2f..%2f..%2fREADME.md",
        "/api/iterations/demo/0001/%2e%2e%2f%2e%2e%2fREADME.md",
        "/api/iterations/demo/0001/%2fetc%2fpasswd",
        "/api/iterations/demo/0001/guard.log%00.txt",
        "/api/iterations/demo/0001/GUARD.LOG",
        "/api/iterations/demo/0001/log/..%2fguard",
        "/api/iterations/demo/0000",
        "/api/iterations/demo/-1",
        "/api/iterations/demo/99999999999999999999",
        "/api/iterations/demo/1e1",
        "/api/iterations/.git/0001",
        "/api/iterations/demo%0a/0001",
        "/api/iterations/%ff/0001",
        "/api/tree/..",
        "/api/tree/%2e%2e%2fstate",
        "/../../etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/%2e%2e/index.html",
        "/..%2f..%2fsecret",
        "//etc/passwd",
        "/api/snapshot?run=../x",
        "/api/tree?run=..",
        "/api/iterations?run=a%2fb",
    ];
    for trick in tricks {
        let answer = server.get(trick);
        assert!(matches!(answer.status, 400 | 403 | 404), "{trick}: {} {}", answer.head, answer.text());
        assert!(!answer.text().contains("secret"), "{trick}");
    }
}

#[test]
fn links_pipes_and_folders_in_the_place_of_logs_are_not_read() {
    let sandbox = finished_run();
    let outside = sandbox.outside().join("secret");
    fs::write(&outside, "secret\n").unwrap();
    let folder = sandbox.path(&format!(".runner/iterations/{RUN}/0002"));
    let replaced = |name: &str| {
        fs::remove_file(folder.join(name)).unwrap();
        folder.join(name)
    };
    symlink(&outside, replaced("guard.log")).unwrap();
    symlink("../0003/prompt.md", replaced("prompt.md")).unwrap();
    assert_eq!(run(std::process::Command::new("mkfifo").arg(replaced("executor.log"))).code, Some(0));
    fs::create_dir(replaced("stream.jsonl")).unwrap();
    symlink("/dev/zero", replaced("meta.json")).unwrap();
    symlink(sandbox.outside(), sandbox.path(".runner/iterations/linked")).unwrap();
    let run_folder = sandbox.path(&format!(".runner/iterations/{RUN}"));
    symlink(&folder, run_folder.join("0009")).unwrap();
    let server = Server::on(sandbox.root());
    for name in ["guard.log", "prompt.md", "executor.log", "stream.jsonl", "meta.json"] {
        let answer = server.iteration(2, &format!("/{name}"));
        assert_eq!((answer.status, answer.text().contains("secret")), (403, false), "{name}");
    }
    for log in ["guard", "agent", "prompt", "stream"] {
        assert_eq!(server.iteration(2, &format!("/log/{log}")).status, 403, "{log}");
        assert_eq!(server.iteration(2, &format!("/log/{log}/search?q=s")).status, 403, "{log}");
    }
    assert_eq!(server.get("/api/iterations/linked/0001/guard.log").status, 404);
    assert_eq!(server.iteration(9, "/events.jsonl").status, 404);
    assert_eq!(server.iteration(2, "").ok()["row"]["outcome"], "guard_failed", "git still knows it");
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
}

#[test]
fn a_linked_runner_folder_is_not_followed() {
    let sandbox = finished_run();
    let elsewhere = sandbox.outside().join("elsewhere");
    fs::rename(sandbox.path(".runner"), &elsewhere).unwrap();
    symlink(&elsewhere, sandbox.path(".runner")).unwrap();
    let server = Server::on(sandbox.root());
    assert_eq!(server.iteration(2, "/guard.log").status, 404);
    // What git has is still shown.
    assert_eq!(server.get("/api/snapshot").ok()["run"]["is_here"], false);
}

#[test]
fn what_an_agent_wrote_is_sent_as_text_whatever_it_is() {
    let sandbox = finished_run();
    let hostile = b"<script>alert(1)</script>\xff\x00\x1b]0;x\x07\x1b[31mred\n\xe2\x80\xae";
    sandbox.write(&format!(".runner/iterations/{RUN}/0002/guard.log"), hostile);
    sandbox.write(
        &format!(".runner/iterations/{RUN}/0002/events.jsonl"),
        "{}\n[1]\nnull\n{\"event\":7}\nnonsense\n\0\n",
    );
    let server = Server::on(sandbox.root());
    let raw = server.iteration(2, "/guard.log");
    assert_eq!(
        (raw.body.as_slice(), raw.header("content-type")),
        (hostile.as_slice(), Some("text/plain; charset=utf-8"))
    );
    let page = server.iteration(2, "/log/guard").ok();
    assert_eq!(page["lines"][0], "<script>alert(1)</script>\u{fffd}\0\u{1b}]0;x\u{7}\u{1b}[31mred");
    assert_eq!(server.iteration(2, "/log/events").ok()["total"], 6);
    assert_eq!(server.get("/api/snapshot").status, 200);
}

#[test]
fn a_huge_log_is_never_held_whole() {
    let sandbox = finished_run();
    let path = sandbox.path(&format!(".runner/iterations/{RUN}/0002/guard.log"));
    let file = fs::File::create(&path).unwrap();
    // Sparse: a line of a quarter of a gigabyte that costs no disk.
    file.set_len(256 << 20).unwrap();
    let server = Server::on(sandbox.root());
    let page = server.iteration(2, "/log/guard?count=5").ok();
    assert_eq!((&page["total"], &page["cut"]), (&json!(1), &json!([0])));
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < 100_000, "{peak} kB");
    fs::remove_file(path).unwrap();
    sandbox.write(".runner/state/tree.json", "x".repeat(65 << 20));
    assert_eq!(server.get("/api/tree").status, 413);
}

#[test]
fn those_who_never_read_and_those_who_never_ask_keep_nobody_out() {
    let sandbox = finished_run();
    sandbox.write(&format!(".runner/iterations/{RUN}/0002/guard.log"), "x\n".repeat(4 << 20));
    let server = Server::on(sandbox.root());
    let request = format!("GET /api/iterations/{RUN}/2/guard.log HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut idle = Vec::new();
    for number in 0..100 {
        let mut stream = server.connect();
        if number % 2 == 0 {
            stream.write_all(request.as_bytes()).unwrap();
        } else {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
        }
        idle.push(stream);
    }
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
    // Beyond the limit, whoever comes is told so at once.
    let more: Vec<_> = (0..110).map(|_| server.connect()).collect();
    let answer = server.get("/api/snapshot");
    assert_eq!(
        (answer.status, answer.text().contains("too many connections")),
        (503, true),
        "{}",
        answer.head
    );
    drop((idle, more));
    let is_free = || {
        let mut stream = server.connect();
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").is_ok() && {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            text.starts_with("HTTP/1.1 200")
        }
    };
    testkit::processes::wait_for("room for a new connection", is_free);
}

#[test]
fn so_many_may_listen_and_no_more() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let listening: Vec<_> = (0..64).map(|_| server.listen(&[])).collect();
    let answer = server.get("/events");
    assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (503, Some("busy")));
    assert_eq!(server.get("/api/snapshot").status, 200);
    drop(listening);
}

#[test]
fn beyond_this_machine_a_token_is_needed() {
    let sandbox = finished_run();
    let server = Server::with(sandbox.root(), &["--bind", "0.0.0.0"]);
    let token = server.url.split("?token=").nth(1).expect("a token in the address").to_owned();
    assert_eq!(server.get("/api/tree").status, 401);
    assert_eq!(server.get("/").status, 401);
    let taken = server.get(&format!("/?token={token}"));
    assert_eq!((taken.status, taken.header("location")), (303, Some("/")));
    let cookie = taken.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(server.ask("GET", "/api/tree", &[("Cookie", cookie)]).status, 200);
    assert_eq!(server.ask("GET", "/api/tree", &[("Cookie", cookie), ("Host", "192.168.0.7")]).status, 200);
    assert_eq!(server.ask("GET", "/api/tree", &[("Cookie", cookie), ("Host", "evil.example")]).status, 403);
    assert_eq!(server.ask("GET", "/api/tree", &[("Authorization", &format!("Bearer {token}"))]).status, 200);
    assert_eq!(server.get("/api/tree?token=wrong").status, 401);
    assert_eq!(Server::with(sandbox.root(), &["--token"]).get("/api/tree").status, 401);
}
