//! Hostile requests and hostile files: the server refuses or bounds them, and keeps working.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::run_builder::RUN;
use testkit::test_repo::run;

use crate::server::{Server, addresses, finished_run};

/// Every address of the server, and one that does not exist.
fn all_addresses() -> Vec<String> {
    let own = ["/", "/assets/app.js", "/healthz", "/events", "/nowhere"].map(str::to_owned);
    own.into_iter().chain(addresses()).collect()
}

#[test]
fn every_route_refuses_foreign_hosts_origins_and_sites() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let own = format!("http://127.0.0.1:{}", server.port);
    for route in all_addresses() {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost@evil.example"] {
            assert_eq!(server.request("GET", &route, &[("Host", host)]).status, 403, "{route} {host}");
        }
        for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"] {
            assert_eq!(server.request("GET", &route, &[("Origin", origin)]).status, 403, "{route} {origin}");
        }
        let foreign =
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "script")];
        assert_eq!(server.request("GET", &route, &foreign).status, 403, "{route}");
    }
    let response = server.request("GET", "/api/tree", &[("Origin", &own)]);
    assert_eq!(response.status, 200);
    assert!(!response.head.contains("access-control"), "{}", response.head);
    assert_eq!(server.raw("GET /api/tree HTTP/1.0\r\n\r\n").status, 403);
    let absolute = format!(
        "GET http://evil.example/api/tree HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
        server.port
    );
    assert_eq!(server.raw(&absolute).status, 403);
}

#[test]
fn every_response_has_the_security_headers() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let routes = all_addresses().into_iter().filter(|route| route != "/events");
    for response in routes.map(|route| server.get(&route)).chain([server.request("POST", "/", &[])]) {
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("cross-origin-resource-policy"), Some("same-origin"));
    }
}

#[test]
fn only_get_and_head_are_allowed() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
        let path = if method == "CONNECT" { "127.0.0.1:1" } else { "/api/tree" };
        let response = server.request(method, path, &[("Content-Length", "0")]);
        assert!(matches!(response.status, 400 | 405), "{method}: {}", response.head);
    }
    assert_eq!(server.get("/api/tree").status, 200);
}

#[test]
fn no_address_leads_out_of_an_iteration() {
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
        let response = server.get(trick);
        assert!(matches!(response.status, 400 | 403 | 404), "{trick}: {} {}", response.head, response.text());
        assert!(!response.text().contains("secret"), "{trick}");
    }
}

#[test]
fn links_pipes_and_folders_in_place_of_logs_are_not_read() {
    let sandbox = finished_run();
    let outside = sandbox.outside().join("secret");
    fs::write(&outside, "secret\n").unwrap();
    let folder = sandbox.path(&format!(".runner/iterations/{RUN}/0002"));
    let removed = |name: &str| {
        fs::remove_file(folder.join(name)).unwrap();
        folder.join(name)
    };
    symlink(&outside, removed("guard.log")).unwrap();
    symlink("../0003/prompt.md", removed("prompt.md")).unwrap();
    assert_eq!(run(std::process::Command::new("mkfifo").arg(removed("executor.log"))).code, Some(0));
    fs::create_dir(removed("stream.jsonl")).unwrap();
    symlink("/dev/zero", removed("meta.json")).unwrap();
    symlink(sandbox.outside(), sandbox.path(".runner/iterations/linked")).unwrap();
    let run_folder = sandbox.path(&format!(".runner/iterations/{RUN}"));
    symlink(&folder, run_folder.join("0009")).unwrap();
    let server = Server::on(sandbox.root());
    for name in ["guard.log", "prompt.md", "executor.log", "stream.jsonl", "meta.json"] {
        let response = server.iteration(2, &format!("/{name}"));
        assert_eq!((response.status, response.text().contains("secret")), (403, false), "{name}");
    }
    for log in ["guard", "agent", "prompt", "stream"] {
        assert_eq!(server.iteration(2, &format!("/log/{log}")).status, 403, "{log}");
        assert_eq!(server.iteration(2, &format!("/log/{log}/search?q=s")).status, 403, "{log}");
    }
    assert_eq!(server.get("/api/iterations/linked/0001/guard.log").status, 404);
    assert_eq!(server.iteration(9, "/events.jsonl").status, 404);
    assert_eq!(server.iteration(2, "").ok()["row"]["outcome"], "guard_failed", "read from the commit");
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
}

#[test]
fn linked_runner_folder_is_not_followed() {
    let sandbox = finished_run();
    let elsewhere = sandbox.outside().join("elsewhere");
    fs::rename(sandbox.path(".runner"), &elsewhere).unwrap();
    symlink(&elsewhere, sandbox.path(".runner")).unwrap();
    let server = Server::on(sandbox.root());
    assert_eq!(server.iteration(2, "/guard.log").status, 404);
    // The commits are still shown.
    assert_eq!(server.get("/api/snapshot").ok()["run"]["is_here"], false);
}

#[test]
fn files_by_agents_are_sent_as_plain_text() {
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
fn huge_log_is_never_held_in_memory() {
    let sandbox = finished_run();
    let path = sandbox.path(&format!(".runner/iterations/{RUN}/0002/guard.log"));
    let file = fs::File::create(&path).unwrap();
    // Sparse: one line of 160 MiB that uses no disk space.
    file.set_len(160 << 20).unwrap();
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
fn stalled_clients_do_not_block_others() {
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
    // Connections beyond the limit are refused at once.
    let more: Vec<_> = (0..110).map(|_| server.connect()).collect();
    let response = server.get("/api/snapshot");
    assert_eq!(
        (response.status, response.text().contains("too many connections")),
        (503, true),
        "{}",
        response.head
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
fn number_of_event_streams_is_limited() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let streams: Vec<_> = (0..64).map(|_| server.listen(&[])).collect();
    let response = server.get("/events");
    assert_eq!((response.status, response.json()["error"]["code"].as_str()), (503, Some("busy")));
    assert_eq!(server.get("/api/snapshot").status, 200);
    drop(streams);
}

#[test]
fn token_is_required_for_other_machines() {
    let sandbox = finished_run();
    let server = Server::with(sandbox.root(), &["--bind", "0.0.0.0"]);
    let token = server.url.split("?token=").nth(1).expect("a token in the address").to_owned();
    assert_eq!(server.get("/api/tree").status, 401);
    assert_eq!(server.get("/").status, 401);
    let redirect = server.get(&format!("/?token={token}"));
    assert_eq!((redirect.status, redirect.header("location")), (303, Some("/")));
    let cookie = redirect.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(server.request("GET", "/api/tree", &[("Cookie", cookie)]).status, 200);
    assert_eq!(
        server.request("GET", "/api/tree", &[("Cookie", cookie), ("Host", "192.168.0.7")]).status,
        200
    );
    assert_eq!(
        server.request("GET", "/api/tree", &[("Cookie", cookie), ("Host", "evil.example")]).status,
        403
    );
    assert_eq!(
        server.request("GET", "/api/tree", &[("Authorization", &format!("Bearer {token}"))]).status,
        200
    );
    assert_eq!(server.get("/api/tree?token=wrong").status, 401);
    assert_eq!(Server::with(sandbox.root(), &["--token"]).get("/api/tree").status, 401);
}
