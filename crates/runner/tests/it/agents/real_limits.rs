//! Limits of the real Codex and Claude Code: tools, files and network, each with its sandbox.

use scripted_model::ScriptedModel;
use testkit::oracle::assert_sound;
use testkit::test_repo::TestRepo;

use crate::agents::real::{BOTH, model_of, ran, setup, started};

/// Ends a session without an answer.
const RETRY: &str = "[[part.step]]\ndo.final = { status = 'retry', summary = 'tried' }\n";

const TOOLS: &str = ".runner/nodes/root/tools.json";

/// Runs one session that tries these steps under this tools.json.
fn tried(kind: &str, tools: &str, steps: &str) -> (TestRepo, ScriptedModel) {
    let model = model_of(&format!("[[part]]\n{steps}{RETRY}"));
    let port = model.url().rsplit(':').next().unwrap().to_owned();
    let sandbox = started(&setup(kind, &model.url()).file("port.txt", port));
    sandbox.write(TOOLS, tools);
    sandbox.runner(&["start"]).ok();
    let step = ran(&sandbox, &["step"]);
    assert_eq!(
        sandbox.outcomes(),
        ["retry"],
        "{kind}: {}{}",
        step.stdout,
        sandbox.iteration_file(1, "executor.log")
    );
    assert_sound(&sandbox);
    (sandbox, model)
}

/// Connects to the model on this machine and to nothing else.
const CONNECT: &str = "[[part.step]]\ndo.shell = '(exec 3<>/dev/tcp/127.0.0.1/$(cat port.txt)) && \
    echo reached > net.txt || echo cut off > net.txt'\n";

/// The tools offered to the model, without duplicates.
fn offered(model: &ScriptedModel) -> Vec<String> {
    let mut tools: Vec<String> = model.requests().iter().flat_map(|request| request.tools.clone()).collect();
    tools.sort();
    tools.dedup();
    tools
}

#[test]
fn claude_gets_only_the_tools_that_the_node_allows() {
    let (sandbox, model) = tried("claude", r#"{"deny": ["NotebookEdit"], "network": false}"#, CONNECT);
    let tools = offered(&model);
    assert!(tools.contains(&"Bash".to_owned()), "{tools:?}");
    for denied in ["NotebookEdit", "WebFetch", "WebSearch"] {
        assert!(!tools.contains(&denied.to_owned()), "{denied} among {tools:?}");
    }
    assert_eq!(sandbox.read("net.txt"), "cut off\n", "{}", sandbox.iteration_file(1, "executor.log"));
    let (_, model) = tried("claude", r#"{"allow": ["Read", "Bash"], "deny": ["Bash"]}"#, "");
    assert_eq!(offered(&model), ["Read", "StructuredOutput"]);
}

#[test]
fn codex_gets_only_the_tools_that_the_node_allows() {
    let (sandbox, model) = tried("codex", r#"{"deny": ["view_image"], "network": false}"#, CONNECT);
    let tools = offered(&model);
    assert!(tools.contains(&"exec_command".to_owned()), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool == "view_image" || tool == "web_search"), "{tools:?}");
    assert_eq!(sandbox.read("net.txt"), "cut off\n");
    let (sandbox, _) = tried("codex", r#"{"network": true}"#, CONNECT);
    assert_eq!(sandbox.read("net.txt"), "reached\n", "what is allowed is there");
    let (_, model) = tried("codex", r#"{"deny": ["shell"]}"#, "");
    assert!(!offered(&model).contains(&"exec_command".to_owned()));
}

/// Writes to four paths and reports for each whether it succeeded.
const PLACES: &str = "[[part.step]]\ndo.shell = 'for place in $HOME/x .git/x inside.txt ../cache/x; do \
    (echo x > $place) && echo could || echo could not; done > tried.txt'\n";

#[test]
fn commands_of_both_agents_stay_inside_the_sandbox() {
    for (kind, level) in [("codex", "own"), ("claude", "bubblewrap")] {
        let (sandbox, _) = tried(kind, "{}", PLACES);
        let log = sandbox.iteration_file(1, "executor.log");
        assert_eq!(sandbox.read("tried.txt"), "could not\ncould not\ncould\ncould not\n", "{kind}: {log}");
        assert_eq!(sandbox.meta(1)["sandbox"], level);
    }
}

#[test]
fn both_agents_write_to_the_nodes_folders_and_anywhere_without_a_sandbox() {
    for kind in BOTH {
        let model = model_of(&format!("[[part]]\n{PLACES}{RETRY}"));
        let sandbox = started(&setup(kind, &model.url()));
        let cache = sandbox.outside().join("cache");
        std::fs::create_dir(&cache).unwrap();
        sandbox.write(TOOLS, format!("{{\"writable\": [\"{}\"]}}", cache.display()));
        sandbox.runner(&["start"]).ok();
        ran(&sandbox, &["step"]);
        let log = sandbox.iteration_file(1, "executor.log");
        assert_eq!(sandbox.read("tried.txt"), "could not\ncould not\ncould\ncould\n", "{kind}: {log}");

        let off = started(&setup(kind, &model.url()).executor_keys("sandbox = \"off\""));
        ran(&off, &["step"]);
        assert!(off.read("tried.txt").starts_with("could\n"), "{kind}: {}", off.read("tried.txt"));
        assert_eq!(off.meta(1)["sandbox"], "none");
    }
}

#[test]
fn claudes_own_tools_change_no_file_outside_the_repository() {
    let write = |path: &std::path::Path| {
        let path = path.display();
        format!(
            "[[part.step]]\ndo.tool = {{ name = 'Write', arguments = {{ file_path = '{path}', content = 'x' }} }}\n"
        )
    };
    let sandbox = started(&setup("claude", "http://127.0.0.1:1"));
    let (outside, inside) = (sandbox.outside().join("x.txt"), sandbox.path("x.txt"));
    let model = model_of(&format!("[[part]]\n{}{}{RETRY}", write(&outside), write(&inside)));
    let config = sandbox.read(".runner/state/config.toml").replace("http://127.0.0.1:1", &model.url());
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    ran(&sandbox, &["step"]);
    let log = sandbox.iteration_file(1, "executor.log");
    assert_eq!((outside.exists(), inside.exists()), (false, true), "{log}");
    assert!(log.contains("this session may not write"), "{log}");
}

/// Six commands of 1,050 tokens each, and an answer.
fn six_commands() -> String {
    let step = |n: u32| format!("[[part.step]]\ndo.shell = 'echo {n} > {n}.txt; sleep 0.3'\n");
    let steps: String = (1..=6).map(step).collect();
    format!("usage = {{ input = 1000, cached = 0, output = 50, reasoning = 0 }}\n[[part]]\n{steps}{RETRY}")
}

#[test]
fn a_session_that_reaches_the_budget_is_stopped_and_its_work_is_committed() {
    for (kind, budget) in [
        ("codex", "run_tokens = 2100"),
        ("codex", "leaf_usd = 0.02\n[prices.\"gpt-5.5\"]\ninput = 10\noutput = 10"),
        ("claude", "leaf_tokens = 2100"),
        ("claude", "run_usd = 0.01"),
    ] {
        let model = model_of(&six_commands());
        let sandbox = started(&setup(kind, &model.url()).config_tables(&format!("[budget]\n{budget}")));
        let ended = ran(&sandbox, &["loop"]);
        let log = sandbox.iteration_file(1, "executor.log");
        assert_eq!(sandbox.outcomes(), ["over_budget"], "{kind} {budget}: {}{log}", ended.stdout);
        assert_eq!(ended.code, Some(4), "{kind} {budget}: {}", ended.stdout);
        assert!(ended.stdout.contains("stop=budget"), "{kind} {budget}: {}", ended.stdout);
        assert_eq!(sandbox.read("1.txt"), "1\n", "{kind}: the work is kept");
        assert!(!sandbox.path("6.txt").exists(), "{kind} {budget}: {log}");
        assert_eq!(sandbox.tree()["root"]["attempts"], 0, "{kind}");
        assert_sound(&sandbox);
    }
}

#[test]
fn the_budget_of_a_loop_stops_a_session_too() {
    for kind in BOTH {
        let model = model_of(&six_commands());
        let sandbox = started(&setup(kind, &model.url()));
        let ended = ran(&sandbox, &["loop", "--max-tokens", "2100"]);
        assert_eq!(sandbox.outcomes(), ["over_budget"], "{kind}: {}", ended.stdout);
        assert!(ended.stdout.contains("stop=loop_budget"), "{kind}: {}", ended.stdout);
    }
}
