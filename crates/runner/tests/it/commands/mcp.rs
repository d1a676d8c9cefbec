//! `runner mcp`, with the client of the protocol's SDK.

use std::collections::BTreeSet;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServiceError, ServiceExt};
use serde_json::{Value, json};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::{completed, started};

type Client = RunningService<RoleClient, ()>;

/// Starts the server in a repository, connects a client, and lets it talk.
fn with_client<T>(repo: &TestRepo, args: &[&str], talk: impl AsyncFnOnce(&Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = tokio::process::Command::from(repo.command(RUNNER));
        command.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.kill_on_drop(true).spawn().unwrap();
        let transport = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let client = ().serve(transport).await.unwrap();
        let result = talk(&client).await;
        client.cancel().await.unwrap();
        let status = server.wait().await.unwrap();
        assert!(status.success(), "{status}");
        result
    })
}

async fn call(client: &Client, name: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().unwrap().clone();
    client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await
}

/// The document that a tool returns.
async fn document(client: &Client, name: &'static str, arguments: Value) -> Value {
    let result = call(client, name, arguments).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{name}: {result:?}");
    result.structured_content.unwrap()
}

fn names(tools: &[Tool]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

#[test]
fn a_client_reads_a_run_as_the_commands_print_it() {
    let agent = "echo work > work; answer done 'wrote it'";
    let repo = completed(&RunBuilder::new(RUNNER).agent(agent).guard("test -e work"));
    let (tools, documents) = with_client(&repo, &[], async |client| {
        let tools = client.list_all_tools().await.unwrap();
        let mut documents = Vec::new();
        for name in ["status", "tree", "log", "report", "verify", "questions", "checks"] {
            documents.push((name, document(client, name, json!({})).await));
        }
        (tools, documents)
    });
    assert!(tools.iter().all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true)));
    assert!(!names(&tools).contains("note"), "{tools:?}");
    for (name, document) in documents {
        let printed: Value = serde_json::from_str(&repo.runner(&[name, "--json"]).ok().stdout).unwrap();
        assert_eq!(document["schema"], printed["schema"], "{name}");
        if name != "status" && name != "report" {
            assert_eq!(document, printed, "{name}");
        }
    }
}

#[test]
fn arguments_reach_the_command_and_failures_reach_the_client() {
    let repo =
        completed(&RunBuilder::new(RUNNER).agent("echo work > work; answer done").guard("test -e work"));
    with_client(&repo, &[], async |client| {
        let guard = document(client, "log", json!({ "target": "1", "guard": true })).await;
        assert_eq!(guard["iter"], 1, "{guard}");
        let failed = call(client, "log", json!({ "run": "nowhere" })).await.unwrap();
        assert_eq!(failed.is_error, Some(true));
        assert_eq!(failed.structured_content.unwrap()["code"], "no_such_run");
        let wrong = call(client, "log", json!({ "follow": true })).await.unwrap();
        assert_eq!(wrong.structured_content.unwrap()["code"], "mcp_arguments");
        assert!(call(client, "note", json!({ "text": "not allowed" })).await.is_err());
    });
    assert_eq!(repo.git(&["log", "--oneline", "--grep", "not allowed"]), "");
}

#[test]
fn edits_are_commits_that_verify_accepts() {
    let repo = started();
    with_client(&repo, &["--allow-edits"], async |client| {
        document(client, "note", json!({ "text": "--help is only text here" })).await;
        let criteria = json!(["it says hello", "it exits with 0"]);
        let arguments = json!({ "parent": "root", "title": "Write the manual", "acceptance": criteria });
        document(client, "node_add", arguments).await;
        let tree = document(client, "tree", json!({})).await;
        assert!(tree.to_string().contains("Write the manual"), "{tree}");
    });
    let notes = repo.read(".runner/state/notes.json");
    assert!(notes.contains("--help is only text here"), "{notes}");
    repo.runner(&["verify"]).ok();
}
