//! `[telemetry]`: traces over OTLP, to a collector that a test plays.

use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use super::notifications::server;
use crate::RUNNER;

/// Two sessions: the guard fails after the first one. The second reports what it used.
const AGENT: &str = r#"
[ "$RUNNER_ITER" = 0002 ] && echo ok > ok
echo '{"usage": {"input_tokens": 1000, "cached_input_tokens": 200, "output_tokens": 100}}' > "$RUNNER_REPORT"
answer done 'a private summary'"#;

fn run_with(tables: &str) -> TestRepo {
    RunBuilder::new(RUNNER).agent(AGENT).guard("test -e ok").config_tables(tables).start()
}

fn spans(trace: &Value) -> &Vec<Value> {
    trace.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array).unwrap()
}

fn span<'t>(trace: &'t Value, name: &str) -> &'t Value {
    let is_named = |span: &&Value| field(span, "name").starts_with(name);
    let found = spans(trace).iter().find(is_named);
    assert!(found.is_some(), "no span `{name}`: {trace:#}");
    found.unwrap()
}

fn field<'t>(value: &'t Value, key: &str) -> &'t str {
    value.get(key).and_then(Value::as_str).unwrap()
}

/// The value of an attribute, whatever its type.
fn attribute<'t>(span: &'t Value, key: &str) -> &'t str {
    let attributes = span.get("attributes").and_then(Value::as_array).unwrap();
    let found = attributes.iter().find(|attribute| field(attribute, "key") == key);
    assert!(found.is_some(), "no attribute `{key}`: {span:#}");
    let value = found.and_then(|attribute| attribute.get("value")).and_then(Value::as_object);
    value.and_then(|value| value.values().next()).and_then(Value::as_str).unwrap()
}

fn time(span: &Value, key: &str) -> u64 {
    field(span, key).parse().unwrap()
}

#[test]
fn every_iteration_is_a_trace_with_session_and_guard() {
    let (port, requests) = server();
    let endpoint = format!("http://127.0.0.1:{port}/");
    let repo = run_with("[telemetry]\notlp_endpoint = \"$COLLECTOR\"");
    let mut command = repo.runner_command(&["loop"]);
    command.env("COLLECTOR", endpoint).env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=night, x-more=2");
    run(&mut command).ok();
    let traces: Vec<Value> = requests
        .try_iter()
        .map(|request| {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("Content-Type: application/json\r\n"), "{head}");
            assert!(head.contains("x-tenant: night\r\n") && head.contains("x-more: 2"), "{head}");
            assert!(!body.contains("a private summary"), "{body}");
            serde_json::from_str(body).unwrap()
        })
        .collect();
    let [failed, passed] = &traces[..] else { panic!("{traces:?}") };
    let root = span(failed, "iteration");
    assert_eq!(attribute(root, "runner.outcome"), "guard_failed");
    assert_eq!(root["status"]["code"], 2);
    assert_eq!(span(failed, "guard")["status"]["code"], 2);

    let root = span(passed, "iteration");
    assert_ne!(root["traceId"], span(failed, "iteration")["traceId"]);
    assert_eq!((attribute(root, "runner.outcome"), attribute(root, "runner.iteration")), ("passed", "2"));
    assert_eq!(attribute(root, "runner.run.id"), "demo");
    assert_eq!(attribute(root, "runner.commit").len(), 40);
    assert_eq!(root["status"], serde_json::json!({}));
    let session = span(passed, "invoke_agent");
    assert_eq!(attribute(session, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(session, "gen_ai.usage.input_tokens"), "1000");
    assert_eq!(attribute(session, "gen_ai.usage.cache_read.input_tokens"), "200");
    assert_eq!(attribute(session, "gen_ai.usage.output_tokens"), "100");
    for part in [session, span(passed, "guard")] {
        assert_eq!((&part["traceId"], &part["parentSpanId"]), (&root["traceId"], &root["spanId"]));
        let (start, end) = (time(part, "startTimeUnixNano"), time(part, "endTimeUnixNano"));
        assert!(time(root, "startTimeUnixNano") <= start && start <= end, "{part}");
        assert!(end <= time(root, "endTimeUnixNano"), "{part}");
    }
    assert_sound(&repo);
}

#[test]
fn nothing_is_sent_without_an_endpoint() {
    let (port, requests) = server();
    let repo = run_with("[telemetry]\ntimeout_secs = 1");
    let mut command = repo.runner_command(&["loop"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{port}"));
    run(&mut command).ok();
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_collector_that_cannot_be_reached_changes_nothing() {
    let repo = run_with("[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"");
    let output = repo.runner(&["loop"]).ok().stdout;
    assert!(output.contains("event=notified to=telemetry ok=false error=\"curl: "), "{output}");
    assert_sound(&repo);
}
