//! The agents of the registry: parsers on recorded output of the real programs, and command lines.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prop_assert_eq;
use proptest::sample::Index;
use runner_core::agents::RepositoryAccess;
use runner_core::agents::{
    AGENTS, AgentEvent, AgentEventKind, AgentSpec, AnswerFiles, CommandLine, CommandSandbox, LaunchContext,
    LaunchUser, ProcessFacts, SessionResult, Transcript, Variables, agent_named, agent_schema,
    can_launch_commands_through,
};
use runner_core::config::{Config, Executor};
use runner_core::model::id::IterationNumber;
use runner_core::model::tools::Tools;
use runner_core::schema::SchemaDocument;
use runner_core::step::{CostSource, Event, SessionExit};

use crate::holds;

/// The recorded sessions that did not exit with 0.
const EXIT_CODES: [(&str, i32); 13] = [
    ("codex-401", 1),
    ("codex-500", 1),
    ("codex-context-exceeded", 1),
    ("codex-precompact-hook-stopped", 1),
    ("codex-sigint", 1),
    ("codex-usage-limit", 1),
    ("claude-500", 1),
    ("claude-context-full", 1),
    ("claude-max-budget", 1),
    ("claude-max-turns", 1),
    ("claude-schema-violated", 1),
    ("claude-sigint", 1),
    ("gemini-401", 145),
];

/// A recorded session: the file `samples/<agent>-<what>.jsonl`.
struct Sample {
    name: String,
    agent: &'static AgentSpec,
    exit_code: i32,
    bytes: Vec<u8>,
}

impl Sample {
    fn parse(&self) -> (Vec<AgentEvent>, SessionResult) {
        parse(self.agent, self.exit_code, std::iter::once(self.bytes.as_slice()))
    }
}

/// Every recorded session. Fails if an agent of the registry has none.
#[expect(clippy::disallowed_methods, reason = "the recordings are files")]
fn samples() -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples");
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let agent = name.split('-').next().unwrap();
        let agent = agent_named(agent).unwrap_or_else(|| panic!("sample `{name}`: no agent `{agent}`"));
        let exit_code = EXIT_CODES.iter().find(|(sample, _)| *sample == name).map_or(0, |(_, code)| *code);
        samples.push(Sample { name, agent, exit_code, bytes: std::fs::read(path).unwrap() });
    }
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    for agent in AGENTS {
        let expected = format!("{}-success", agent.name);
        assert!(
            samples.iter().any(|sample| sample.name == expected),
            "agent `{}` has no recorded session: save the output of a successful one as {}/{expected}.jsonl \
             (CONTRIBUTING.md, \"Adding an agent\")",
            agent.name,
            folder.display()
        );
    }
    samples
}

/// The events and the result of output that arrives in these chunks.
pub(crate) fn parse<'p>(
    agent: &'static AgentSpec,
    code: i32,
    chunks: impl Iterator<Item = &'p [u8]>,
) -> (Vec<AgentEvent>, SessionResult) {
    let mut transcript = Transcript::new(&agent.output);
    let mut events: Vec<AgentEvent> = chunks.flat_map(|chunk| transcript.push(chunk)).collect();
    events.extend(transcript.finish());
    let process = ProcessFacts {
        exit: SessionExit::Finished { code },
        stderr: b"",
        is_context_full: false,
        now_unix_secs: 1_794_789_000,
    };
    (events, transcript.conclude(process))
}

#[test]
fn recorded_sessions_give_the_events_of_their_snapshots() {
    for sample in samples() {
        let (events, result) = sample.parse();
        for (seq, event) in (1..).zip(events.clone()) {
            let iter = IterationNumber::FIRST;
            crate::schema::assert_recorded_as_described(&Event::Agent { iter, seq, activity: event });
        }
        let lines =
            events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect::<String>();
        let answer = result.answer.map(|answer| String::from_utf8(answer).unwrap());
        let result = serde_json::json!({
            "exit": result.exit, "usage": result.usage, "answer": answer, "identity": result.identity,
        });
        insta::assert_snapshot!(sample.name, format!("{lines}\n{result:#}\n"));
    }
}

#[test]
fn chunk_boundaries_do_not_matter() {
    let samples = samples();
    for sample in &samples {
        let bytewise = parse(sample.agent, sample.exit_code, sample.bytes.chunks(1));
        assert_eq!(bytewise, sample.parse(), "{}, byte by byte", sample.name);
    }
    let whole: Vec<_> = samples.iter().map(|sample| (sample, sample.parse())).collect();
    let cuts = vec(proptest::prelude::any::<Index>(), 0..20);
    holds((proptest::prelude::any::<Index>(), cuts), |(which, cuts)| {
        let (sample, expected) = which.get(&whole);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(sample.bytes.len())).collect();
        ends.extend([0, sample.bytes.len()]);
        ends.sort_unstable();
        let chunks = ends.windows(2).map(|pair| &sample.bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&parse(sample.agent, sample.exit_code, chunks), expected);
        Ok(())
    });
}

#[test]
fn no_parser_panics_on_invalid_lines() {
    let invalid: [&[u8]; 9] = [
        b"",
        b"\n\r\n",
        b"not json\n",
        b"[1, 2]\n",
        b"{\"type\": 5}\n",
        b"{\"type\":\"item.completed\"}\n",
        b"{\"type\":\"assistant\",\"message\":{\"content\":7}}\n",
        b"{\"type\":\"result\",\"is_error\":\"no\",\"usage\":[]}\n",
        b"\xff\xfe{\"type\":\"result\"\n",
    ];
    for agent in AGENTS {
        for line in invalid {
            parse(agent, 0, std::iter::once(line));
        }
    }
    holds(vec(proptest::prelude::any::<u8>(), 0..200), |bytes| {
        for agent in AGENTS {
            parse(agent, 0, std::iter::once(bytes.as_slice()));
        }
        Ok(())
    });
}

#[test]
fn what_enters_a_session_of_claude_is_a_warning() {
    let warnings = |fields: &str| -> Vec<String> {
        let line = format!("{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"{fields}}}\n");
        let (events, _) = parse(agent_named("claude").unwrap(), 0, std::iter::once(line.as_bytes()));
        let warning = |kind| if let AgentEventKind::Warning { text } = kind { Some(text) } else { None };
        events.into_iter().filter_map(|event| warning(event.kind)).collect()
    };
    let clean = ",\"plugins\":[{\"name\":\"cc\",\"path\":\"builtin\"}],\"skills\":[],\"memory_paths\":{},\"mcp_server_errors\":[],\"mcp_servers\":[]";
    assert_eq!(warnings(clean), [""; 0]);
    let entered = ",\"plugins\":[{\"name\":\"eleven\",\"path\":\"/p\"}],\"skills\":[\"verify\"],\
        \"memory_paths\":{\"auto\":\"/home/me/memory\"},\"mcp_server_errors\":[{\"name\":\"docs\",\"error\":\"x\"}]";
    assert_eq!(
        warnings(entered),
        [
            "plugins take part in this session: eleven",
            "skills take part in this session: verify",
            "memory of other sessions takes part in this session: /home/me/memory",
            "MCP servers failed: docs",
        ]
    );
}

#[test]
fn codex_reports_what_it_writes_to_a_cache() {
    let line = b"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":10,\"cached_input_tokens\":2,\
        \"cache_write_input_tokens\":5,\"output_tokens\":1}}\n";
    let (_, result) = parse(agent_named("codex").unwrap(), 0, std::iter::once(line.as_slice()));
    assert_eq!(
        (result.usage.input_tokens, result.usage.cached_input_tokens, result.usage.cache_write_input_tokens),
        (Some(10), Some(2), Some(5))
    );
}

#[test]
fn all_agents_count_tokens_in_the_same_way() {
    let samples = samples();
    let usage = |name: &str| samples.iter().find(|sample| sample.name == name).unwrap().parse().1.usage;
    // In all scripts the model reads 1,000 tokens twice, 200 of them from a cache, and writes 50.
    for agent in ["codex", "claude", "gemini", "opencode", "pi", "qwen"] {
        let usage = usage(&format!("{agent}-success"));
        assert_eq!(
            (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
            (Some(2_000), Some(400), Some(100)),
            "{agent}"
        );
    }
    let codex = usage("codex-success");
    assert_eq!((codex.cost_microdollars, codex.cost_source), (None, CostSource::Unknown));
    let claude = usage("claude-success");
    assert_eq!((claude.cost_microdollars, claude.cost_source), (Some(10_700), CostSource::Reported));
}

pub(crate) fn user() -> Variables {
    let variables = [
        ("PATH", "/usr/bin"),
        ("HOME", "/home/me"),
        ("LC_TIME", "C"),
        ("TZ", "Asia/Tokyo"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("CODEX_API_KEY", "sk-codex"),
        ("ANTHROPIC_API_KEY", "sk-claude"),
        ("MY_KEY", "sk-mine"),
        ("MY_TOOL", "yes"),
        ("GIT_DIR", "/elsewhere"),
    ];
    variables.map(|(name, value)| (OsString::from(name), OsString::from(value))).into()
}

pub(crate) fn executor(text: &str) -> Executor {
    Config::decode(format!("[executor]\n{text}").as_bytes()).unwrap().executor
}

static NO_FILES: BTreeMap<&str, String> = BTreeMap::new();

pub(crate) fn launch_context<'a>(user: &'a Variables, schema: &'a [u8]) -> LaunchContext<'a> {
    LaunchContext {
        answer: AnswerFiles {
            path: "/git/runner/answers/0001.json".into(),
            schema: "/repo/.runner/state/agent_output.schema.json".into(),
            schema_bytes: schema,
        },
        context_full: "/git/runner/answers/0001.full".into(),
        settings_dir: "/git/runner/answers".into(),
        writable: Vec::new(),
        access: RepositoryAccess::Writable,
        sandbox: None,
        microdollars: None,
        user: LaunchUser { variables: user, login_files: &NO_FILES, is_root: true },
        recorder: None,
    }
}

/// The command line of an agent with these keys in `[executor]`, besides those that choose the agent.
pub(crate) fn command_line(
    agent: &'static AgentSpec,
    keys: &str,
    tools: &Tools,
    context: &LaunchContext<'_>,
) -> CommandLine {
    let chosen_by = if agent.is_preset() {
        format!("kind = \"command\"\npreset = \"{}\"\n", agent.name)
    } else {
        format!("kind = \"{}\"\n", agent.name)
    };
    agent.command_line(&executor(&format!("{chosen_by}{keys}")), tools, context)
}

pub(crate) fn shown(line: &CommandLine) -> String {
    let arguments: Vec<String> =
        line.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let environment = line.environment.iter();
    let environment =
        environment.map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    let files =
        line.files.iter().map(|file| format!("{} {}\n{}", file.path.display(), file.is_program, file.text));
    let links = line.links.iter().map(|link| format!("{} -> {}", link.path.display(), link.target.display()));
    let parts = [arguments, environment.collect(), files.chain(links).collect::<Vec<_>>()];
    parts.map(|part| part.join("\n")).join("\n\n")
}

pub(crate) const PROVIDER_KEYS: &str =
    "model = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"MY_KEY\"\n";

#[test]
fn command_lines_match_their_snapshots() {
    let user = user();
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let context = launch_context(&user, &schema);
    let limits = br#"{"allow": ["Read", "Bash"], "deny": ["web_search", "shell"], "network": false}"#;
    let limits = Tools::decode(limits).unwrap();
    let sandboxed = LaunchContext {
        writable: vec!["/var/cache/it's".into()],
        sandbox: Some(CommandSandbox {
            command_prefix: ["/usr/bin/bwrap", "--unshare-net", "--"].map(OsString::from).into(),
            file_hook: ["/usr/bin/runner", "__fence", "/repo"].map(OsString::from).into(),
        }),
        microdollars: Some(2_050_000),
        ..context.clone()
    };
    let no_limits = Tools::default();
    let native_keys = format!(
        "{PROVIDER_KEYS}effort = \"high\"\nretries = 1\nenv_inherit = [\"MY_T*\"]\nnetwork = \"registries\"\n\
         mcp = [\"docs=docs-server --stdio\", \"db=http://127.0.0.1:9/mcp\"]\n"
    );
    for agent in AGENTS {
        let name = agent.name;
        let plain = shown(&command_line(agent, "", &no_limits, &context));
        if agent.is_preset() {
            let full = shown(&command_line(agent, PROVIDER_KEYS, &no_limits, &context));
            insta::assert_snapshot!(format!("preset-{name}"), format!("{plain}\n\n----\n\n{full}"));
            continue;
        }
        insta::assert_snapshot!(format!("{name}-command-line"), plain);
        let full = shown(&command_line(agent, &native_keys, &no_limits, &context));
        insta::assert_snapshot!(format!("{name}-command-line-with-everything"), full);
        let limited = shown(&command_line(agent, "", &limits, &sandboxed));
        insta::assert_snapshot!(format!("{name}-command-line-with-limits"), limited);
    }
}

#[test]
fn recorder_is_in_the_place_of_every_provider() {
    let url = "http://127.0.0.1:7/token/v1";
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let mut user = user();
    user.insert("no_proxy".into(), "localhost".into());
    let context = LaunchContext { recorder: Some(url), ..launch_context(&user, &schema) };
    for agent in AGENTS {
        let keys = if agent.is_preset() { vec![PROVIDER_KEYS] } else { vec![PROVIDER_KEYS, ""] };
        for keys in keys {
            let line = command_line(agent, keys, &Tools::default(), &context);
            let text = shown(&line);
            assert!(text.contains(url), "{} {keys}: {text}", agent.name);
            assert!(!text.contains("http://127.0.0.1:1/"), "{} {keys}: {text}", agent.name);
            let variable =
                |name: &str| line.environment.get(OsStr::new(name)).and_then(|value| value.to_str());
            assert_eq!(
                (variable("NO_PROXY"), variable("no_proxy")),
                (Some("127.0.0.1"), Some("localhost,127.0.0.1"))
            );
        }
    }
}

#[test]
fn a_native_agent_sees_only_its_own_keys() {
    let user = user();
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let context = launch_context(&user, &schema);
    for (name, own, other) in
        [("codex", "CODEX_API_KEY", "ANTHROPIC_API_KEY"), ("claude", "ANTHROPIC_API_KEY", "CODEX_API_KEY")]
    {
        let line = command_line(agent_named(name).unwrap(), "", &Tools::default(), &context);
        let has = |name: &str| line.environment.contains_key(OsStr::new(name));
        assert!(has("PATH") && has("LC_TIME") && has(own), "{name}");
        assert!(!has("AWS_SECRET_ACCESS_KEY") && !has("MY_KEY") && !has("GIT_DIR") && !has(other), "{name}");
    }
}

#[test]
fn codex_gets_a_home_of_its_own_with_the_users_login() {
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let mut user = user();
    let home = |user: &Variables, keys: &str| {
        let context = launch_context(user, &schema);
        let line = command_line(agent_named("codex").unwrap(), keys, &Tools::default(), &context);
        let links: Vec<PathBuf> = line.links.into_iter().map(|link| link.target).collect();
        (line.environment.get(OsStr::new("CODEX_HOME")).cloned(), links)
    };
    let own = Some(OsString::from("/git/runner/answers/codex"));
    assert_eq!(home(&user, ""), (own.clone(), vec!["/home/me/.codex/auth.json".into()]));
    user.insert("CODEX_HOME".into(), "/elsewhere".into());
    assert_eq!(home(&user, ""), (own.clone(), vec!["/elsewhere/auth.json".into()]));
    assert_eq!(home(&user, PROVIDER_KEYS), (own, Vec::new()), "another provider needs no login");
}

#[test]
fn codex_gets_another_temporary_folder_if_its_home_is_in_the_first() {
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let mut user = user();
    let temporary = |user: &Variables| {
        let context = launch_context(user, &schema);
        let line = command_line(agent_named("codex").unwrap(), "", &Tools::default(), &context);
        line.environment.get(OsStr::new("TMPDIR")).cloned()
    };
    assert_eq!(temporary(&user), None);
    user.insert("TMPDIR".into(), "/git".into());
    assert_eq!(temporary(&user), Some("/git/runner/answers/codex/runner-tmp".into()));
    user.insert("TMPDIR".into(), "/var/tmp".into());
    assert_eq!(temporary(&user), Some("/var/tmp".into()));
}

#[test]
fn claude_gets_no_command_launcher_at_a_path_that_it_would_split() {
    let user = user();
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    // The agent's shell is a file too, at any path.
    for (settings_dir, expected, files) in [("/git/a-b c", true, 2), ("/git/a -b", false, 1)] {
        let context = LaunchContext { settings_dir: settings_dir.into(), ..launch_context(&user, &schema) };
        let line = command_line(agent_named("claude").unwrap(), "", &Tools::default(), &context);
        let prefix = line.environment.contains_key(OsStr::new("CLAUDE_CODE_SHELL_PREFIX"));
        assert_eq!((prefix, line.files.len()), (expected, files), "{settings_dir}");
        assert_eq!(can_launch_commands_through(Path::new(settings_dir)), expected, "{settings_dir}");
    }
}

#[test]
fn the_schema_for_agents_has_no_dialect() {
    let schema = agent_schema(&SchemaDocument::AgentOutput.schema_bytes()).unwrap();
    assert!(
        !schema.contains("$schema") && schema.contains("\"required\":[\"status\",\"summary\"]"),
        "{schema}"
    );
    assert_eq!(agent_schema(b"[]"), None);
}
