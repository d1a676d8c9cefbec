//! What agents print, as recorded from the real programs, and how each is started.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use proptest::collection::vec;
use proptest::prop_assert_eq;
use proptest::sample::Index;
use runner_core::agents::{
    AgentEvent, AgentKind, CommandLine, CommandSandbox, LaunchContext, Preset, ProcessFacts, SessionResult,
    Transcript, TranscriptFormat, Variables, can_be_started_through, command_line,
};
use runner_core::config::{Config, Executor};
use runner_core::model::id::IterationNumber;
use runner_core::model::tools::Tools;
use runner_core::schema::SchemaDocument;
use runner_core::step::{CostSource, Event, SessionExit};

use crate::holds;

/// The transcripts, with the exit code that each session had.
const SAMPLES: [(TranscriptFormat, &str, i32); 25] = [
    (TranscriptFormat::Codex, "codex-401", 1),
    (TranscriptFormat::Codex, "codex-500", 1),
    (TranscriptFormat::Codex, "codex-context-exceeded", 1),
    (TranscriptFormat::Codex, "codex-failed-command", 0),
    (TranscriptFormat::Codex, "codex-file-change", 0),
    (TranscriptFormat::Codex, "codex-precompact-hook-stopped", 1),
    (TranscriptFormat::Codex, "codex-sigint", 1),
    (TranscriptFormat::Codex, "codex-success", 0),
    (TranscriptFormat::Codex, "codex-usage-limit", 1),
    (TranscriptFormat::Claude, "claude-500", 1),
    (TranscriptFormat::Claude, "claude-compacted", 0),
    (TranscriptFormat::Claude, "claude-context-full", 1),
    (TranscriptFormat::Claude, "claude-max-budget", 1),
    (TranscriptFormat::Claude, "claude-max-turns", 1),
    (TranscriptFormat::Claude, "claude-schema-ignored", 0),
    (TranscriptFormat::Claude, "claude-schema-violated", 1),
    (TranscriptFormat::Claude, "claude-sigint", 1),
    (TranscriptFormat::Claude, "claude-success", 0),
    (TranscriptFormat::Copilot, "copilot-success", 0),
    (TranscriptFormat::Gemini, "gemini-401", 145),
    (TranscriptFormat::Gemini, "gemini-success", 0),
    (TranscriptFormat::Opencode, "opencode-success", 0),
    (TranscriptFormat::Pi, "pi-success", 0),
    (TranscriptFormat::Qwen, "qwen-401", 0),
    (TranscriptFormat::Qwen, "qwen-success", 0),
];

const DIALECTS: [TranscriptFormat; 7] = [
    TranscriptFormat::Codex,
    TranscriptFormat::Claude,
    TranscriptFormat::Copilot,
    TranscriptFormat::Gemini,
    TranscriptFormat::Opencode,
    TranscriptFormat::Pi,
    TranscriptFormat::Qwen,
];

#[expect(clippy::disallowed_methods, reason = "the recordings are files")]
fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples").join(format!("{name}.jsonl"));
    std::fs::read(path).unwrap()
}

/// The events and the end of a transcript that comes in these pieces.
pub(crate) fn heard<'p>(
    dialect: TranscriptFormat,
    code: i32,
    pieces: impl Iterator<Item = &'p [u8]>,
) -> (Vec<AgentEvent>, SessionResult) {
    let mut transcript = Transcript::new(dialect);
    let mut events: Vec<AgentEvent> = pieces.flat_map(|piece| transcript.push(piece)).collect();
    events.extend(transcript.finish());
    let aftermath = ProcessFacts {
        exit: SessionExit::Finished { code },
        stderr: b"",
        is_context_full: false,
        now_unix_secs: 1_794_789_000,
    };
    (events, transcript.conclude(aftermath))
}

#[test]
fn every_recorded_session_means_what_its_snapshot_says() {
    let listed = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples")).unwrap();
    assert_eq!(listed.count(), SAMPLES.len(), "a sample is not in the list");
    for (agent, name, code) in SAMPLES {
        let bytes = sample(name);
        let (events, end) = heard(agent, code, std::iter::once(bytes.as_slice()));
        for (seq, what) in (1..).zip(events.clone()) {
            let iter = IterationNumber::FIRST;
            crate::schema::assert_recorded_as_described(&Event::Agent { iter, seq, activity: what });
        }
        let lines =
            events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect::<String>();
        let answer = end.answer.map(|answer| String::from_utf8(answer).unwrap());
        let told = serde_json::json!({
            "exit": end.exit, "usage": end.usage, "answer": answer, "identity": end.identity,
        });
        insta::assert_snapshot!(name, format!("{lines}\n{told:#}\n"));
    }
}

#[test]
fn where_the_pieces_end_makes_no_difference() {
    for (agent, name, code) in SAMPLES {
        let bytes = sample(name);
        let whole = heard(agent, code, std::iter::once(bytes.as_slice()));
        let single = heard(agent, code, bytes.chunks(1));
        assert_eq!(single, whole, "{name}, byte by byte");
    }
    let wholes: Vec<_> = SAMPLES
        .iter()
        .map(|(dialect, name, code)| {
            let bytes = sample(name);
            let whole = heard(*dialect, *code, std::iter::once(bytes.as_slice()));
            (*dialect, *code, bytes, whole)
        })
        .collect();
    let cuts = vec(proptest::prelude::any::<Index>(), 0..20);
    holds((proptest::prelude::any::<Index>(), cuts), |(which, cuts)| {
        let (dialect, code, bytes, whole) = which.get(&wholes);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        ends.extend([0, bytes.len()]);
        ends.sort_unstable();
        let pieces = ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&heard(*dialect, *code, pieces), whole);
        Ok(())
    });
}

#[test]
fn no_line_is_too_odd_to_be_read() {
    let odd: [&[u8]; 9] = [
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
    for dialect in DIALECTS {
        for line in odd {
            heard(dialect, 0, std::iter::once(line));
        }
    }
    holds(vec(proptest::prelude::any::<u8>(), 0..200), |bytes| {
        for dialect in DIALECTS {
            heard(dialect, 0, std::iter::once(bytes.as_slice()));
        }
        Ok(())
    });
}

#[test]
fn all_agents_mean_the_same_by_input() {
    let of = |name: &str| {
        let (agent, _, code) = *SAMPLES.iter().find(|sample| sample.1 == name).unwrap();
        heard(agent, code, std::iter::once(sample(name).as_slice())).1.usage
    };
    for preset in ["gemini-success", "opencode-success", "pi-success", "qwen-success"] {
        let usage = of(preset);
        assert_eq!(
            (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
            (Some(2_000), Some(400), Some(100)),
            "{preset}"
        );
    }
    // All scripts let the model read 1,000 tokens twice, 200 of them from a cache, and write 50.
    let (codex, claude) = (of("codex-success"), of("claude-success"));
    for usage in [codex, claude] {
        assert_eq!(
            (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
            (Some(2_000), Some(400), Some(100))
        );
    }
    assert_eq!((codex.cost_microdollars, codex.cost_source), (None, CostSource::Unknown));
    assert_eq!((claude.cost_microdollars, claude.cost_source), (Some(10_700), CostSource::Reported));
}

fn user() -> Variables {
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

fn places<'a>(user: &'a Variables, schema: &'a [u8]) -> LaunchContext<'a> {
    LaunchContext {
        answer: "/git/runner/answers/0001.json".into(),
        schema: "/repo/.runner/state/agent_output.schema.json".into(),
        schema_bytes: schema,
        context_full: "/git/runner/answers/0001.full".into(),
        settings: "/git/runner/answers".into(),
        writable: Vec::new(),
        fence: None,
        user,
        is_root: true,
    }
}

fn shown(line: &CommandLine) -> String {
    let arguments: Vec<String> =
        line.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let environment = line.environment.iter();
    let environment =
        environment.map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    let files =
        line.files.iter().map(|file| format!("{} {}\n{}", file.path.display(), file.is_program, file.text));
    let parts = [arguments, environment.collect(), files.collect::<Vec<_>>()];
    parts.map(|part| part.join("\n")).join("\n\n")
}

#[test]
fn the_command_lines_are_as_their_snapshots_say() {
    let (user, schema) = (user(), SchemaDocument::AgentOutput.schema_bytes());
    let (places, tools) = (places(&user, &schema), Tools::default());
    let limits = br#"{"allow": ["Read", "Bash"], "deny": ["web_search", "shell"], "network": false}"#;
    let limits = Tools::decode(limits).unwrap();
    let fenced = LaunchContext {
        writable: vec!["/var/cache/it's".into()],
        fence: Some(CommandSandbox {
            around_commands: ["/usr/bin/bwrap", "--unshare-net", "--"].map(OsString::from).into(),
            before_files: ["/usr/bin/runner", "__fence", "/repo"].map(OsString::from).into(),
        }),
        ..places.clone()
    };
    let more = "model = \"m\"\neffort = \"high\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"MY_KEY\"\n\
                retries = 1\nenv_inherit = [\"MY_T*\"]\n";
    for (agent, kind) in [(AgentKind::Codex, "codex"), (AgentKind::Claude, "claude")] {
        let plain =
            command_line(agent, &executor(&format!("kind = \"{kind}\"\n")), &Tools::default(), &places);
        insta::assert_snapshot!(format!("{kind}-command-line"), shown(&plain));
        let full = command_line(agent, &executor(&format!("kind = \"{kind}\"\n{more}")), &tools, &places);
        insta::assert_snapshot!(format!("{kind}-command-line-with-everything"), shown(&full));
        let limited = command_line(agent, &executor(&format!("kind = \"{kind}\"\n")), &limits, &fenced);
        insta::assert_snapshot!(format!("{kind}-command-line-with-limits"), shown(&limited));
    }
    for preset in Preset::ALL {
        let name = preset.facts().program;
        let command = format!("kind = \"command\"\npreset = \"{name}\"\n");
        let plain = preset.command_line(&executor(&command), &places);
        let more = "model = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"MY_KEY\"\n";
        let full = preset.command_line(&executor(&format!("{command}{more}")), &places);
        insta::assert_snapshot!(
            format!("preset-{name}"),
            format!("{}\n\n----\n\n{}", shown(&plain), shown(&full))
        );
    }
}

#[test]
fn an_agent_sees_no_variable_that_is_not_meant_for_it() {
    let (user, schema) = (user(), SchemaDocument::AgentOutput.schema_bytes());
    let places = places(&user, &schema);
    for (agent, own, other) in [
        (AgentKind::Codex, "CODEX_API_KEY", "ANTHROPIC_API_KEY"),
        (AgentKind::Claude, "ANTHROPIC_API_KEY", "CODEX_API_KEY"),
    ] {
        let kind = agent.facts().program;
        let line =
            command_line(agent, &executor(&format!("kind = \"{kind}\"\n")), &Tools::default(), &places);
        let has = |name: &str| line.environment.contains_key(OsStr::new(name));
        assert!(has("PATH") && has("LC_TIME") && has(own), "{kind}");
        assert!(!has("AWS_SECRET_ACCESS_KEY") && !has("MY_KEY") && !has("GIT_DIR") && !has(other), "{kind}");
    }
}

#[test]
fn a_home_of_codex_among_temporary_files_gets_another_folder_for_them() {
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let mut user = user();
    let temporary = |user: &Variables| {
        let line =
            command_line(AgentKind::Codex, &Executor::default(), &Tools::default(), &places(user, &schema));
        (line.environment.get(OsStr::new("TMPDIR")).cloned(), line.folders)
    };
    assert_eq!(temporary(&user), (None, Vec::new()));
    user.insert("CODEX_HOME".into(), "/tmp/x".into());
    assert_eq!(temporary(&user), (Some("/tmp/x/runner-tmp".into()), vec!["/tmp/x/runner-tmp".into()]));
    user.insert("TMPDIR".into(), "/var/tmp".into());
    assert_eq!(temporary(&user), (Some("/var/tmp".into()), Vec::new()));
}

#[test]
fn claude_is_given_no_program_for_its_commands_that_it_could_not_start() {
    let (user, schema) = (user(), SchemaDocument::AgentOutput.schema_bytes());
    for (settings, expected) in [("/git/a-b c", true), ("/git/a -b", false)] {
        let places = LaunchContext { settings: settings.into(), ..places(&user, &schema) };
        let line =
            command_line(AgentKind::Claude, &executor("kind = \"claude\"\n"), &Tools::default(), &places);
        let prefix = line.environment.contains_key(OsStr::new("CLAUDE_CODE_SHELL_PREFIX"));
        assert_eq!((prefix, line.files.len()), (expected, usize::from(expected)), "{settings}");
        assert_eq!(can_be_started_through(Path::new(settings)), expected, "{settings}");
    }
}

#[test]
fn agents_are_not_told_the_dialect_of_the_schema() {
    let schema = runner_core::agents::agent_schema(&SchemaDocument::AgentOutput.schema_bytes()).unwrap();
    assert!(
        !schema.contains("$schema") && schema.contains("\"required\":[\"status\",\"summary\"]"),
        "{schema}"
    );
    assert_eq!(runner_core::agents::agent_schema(b"[]"), None);
}
