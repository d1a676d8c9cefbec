//! From a request to what is played: which part, which step, which fault, which tool.

use serde_json::{Value, json};

use crate::request_log::{LoggedRequest, RequestKind, ScriptState};
use crate::script::{InjectedFault, ModelAction, ModelScript, ScriptStep, ScriptUsage, StepCounter};
use crate::wire::{ModelRequest, ModelTurn, OfferedTool, TokenCounts, TurnAction};

/// What the server does with a request.
pub(crate) enum ServerChoice {
    /// Answers it.
    Answer(Box<ChosenAnswer>),
    /// Answers with an error of the server's own.
    Refuse(String),
}

/// An answer, and what goes wrong with it.
pub(crate) struct ChosenAnswer {
    pub(crate) turn: ModelTurn,
    pub(crate) delay_ms: u64,
    pub(crate) trouble: Option<InjectedFault>,
}

/// What a request for a summary of the conversation says, in the agents that there are.
const SUMMARY_MARKS: [&str; 2] = ["CONTEXT CHECKPOINT COMPACTION", "followed by a <summary> block"];
const SUMMARY: &str = "<analysis>as scripted</analysis>\n<summary>what happened so far</summary>";
const ASIDE: &str = "ok";

/// What answers are said to have cost, where the script does not say.
const USUAL: TokenCounts = TokenCounts { input: 1000, cached: 200, output: 50, reasoning: 10 };

/// Decides, and notes the decision on the request.
pub(crate) fn choose(
    script: &ModelScript,
    asked: &ModelRequest,
    pages: &mut ScriptState,
    request: &mut LoggedRequest,
) -> ServerChoice {
    request.tools = asked.tools.iter().map(|tool| tool.name.clone()).collect();
    if request.number >= script.requests_max {
        return ServerChoice::Refuse(format!("the script allows {} requests", script.requests_max));
    }
    let beside = |text: &str| {
        let act = TurnAction::Text(text.to_owned());
        let turn = ModelTurn { act, say: None, tokens: tokens_of(script.usage), number: request.number };
        ServerChoice::Answer(Box::new(ChosenAnswer { turn, delay_ms: 0, trouble: None }))
    };
    if SUMMARY_MARKS.iter().any(|mark| asked.last.contains(mark)) {
        request.kind = RequestKind::Summary;
        return beside(SUMMARY);
    }
    if asked.tools.is_empty() {
        request.kind = RequestKind::Aside;
        return beside(ASIDE);
    }
    let found = script.parts.iter().enumerate().find(|(_, part)| part.fits(&asked.prompt));
    let Some((index, part)) = found else {
        return ServerChoice::Refuse("no part of the script fits the prompt".to_owned());
    };
    let session = (asked.session.clone(), index);
    let position = match script.count {
        StepCounter::Results => asked.results,
        StepCounter::Requests => pages.served.get(&session).copied().unwrap_or(0),
    };
    let position = position.min(part.steps.len().saturating_sub(1));
    let Some(step) = part.steps.get(position) else {
        return ServerChoice::Refuse("the part of the script has no step".to_owned());
    };
    (request.kind, request.part, request.step) = (RequestKind::Step, Some(index), Some(position));
    let trouble = next_trouble(step, (index, position), pages);
    request.fault = trouble.as_ref().map(InjectedFault::name);
    if trouble.is_none() {
        *pages.served.entry(session).or_default() += 1;
    }
    match act_of(step, &asked.tools) {
        Ok(act) => {
            let tokens = tokens_of(step.usage.or(script.usage));
            let turn = ModelTurn { act, say: step.say.clone(), tokens, number: request.number };
            ServerChoice::Answer(Box::new(ChosenAnswer { turn, delay_ms: step.delay_ms, trouble }))
        }
        Err(why) => ServerChoice::Refuse(why),
    }
}

/// The first fault of the step that was not played often enough.
fn next_trouble(
    step: &ScriptStep,
    (part, position): (usize, usize),
    pages: &mut ScriptState,
) -> Option<InjectedFault> {
    for (place, fault) in step.faults.iter().enumerate() {
        let played = pages.faults.entry((part, position, place)).or_default();
        if fault.times.is_none_or(|times| *played < times) {
            *played += 1;
            return Some(fault.what.clone());
        }
    }
    None
}

fn tokens_of(usage: ScriptUsage) -> TokenCounts {
    TokenCounts {
        input: usage.input.unwrap_or(USUAL.input),
        cached: usage.cached.unwrap_or(USUAL.cached),
        output: usage.output.unwrap_or(USUAL.output),
        reasoning: usage.reasoning.unwrap_or(USUAL.reasoning),
    }
}

fn act_of(step: &ScriptStep, tools: &[OfferedTool]) -> Result<TurnAction, String> {
    let call = |name: &str, arguments: Value| TurnAction::Call { name: name.to_owned(), arguments };
    Ok(match &step.action {
        // Only a step that never gets past its fault does nothing.
        None => TurnAction::Text(ASIDE.to_owned()),
        Some(ModelAction::Shell(line)) => shell(line, tools)?,
        Some(ModelAction::Tool { name, arguments }) => call(name, arguments.clone()),
        Some(ModelAction::Custom { name, input }) => {
            TurnAction::Custom { name: name.clone(), input: input.clone() }
        }
        Some(ModelAction::Final(Value::String(text))) => TurnAction::Text(text.clone()),
        Some(ModelAction::Final(value)) => {
            let structured = ["StructuredOutput", "structured_output"];
            match tools.iter().find(|tool| structured.contains(&tool.name.as_str())) {
                Some(tool) => call(&tool.name, value.clone()),
                None => TurnAction::Text(value.to_string()),
            }
        }
    })
}

/// The shell tools of the agents that there are: what each is called, and what it takes.
type ShellTool = (&'static str, fn(&str) -> Value);
const SHELLS: [ShellTool; 6] = [
    ("exec_command", |line| json!({ "cmd": line })),
    ("shell_command", |line| json!({ "command": line })),
    ("shell", |line| json!({ "command": ["bash", "-lc", line] })),
    ("Bash", |line| json!({ "command": line, "description": "as scripted" })),
    ("bash", |line| json!({ "command": line, "description": "as scripted" })),
    (
        "run_shell_command",
        |line| json!({ "command": line, "description": "as scripted", "is_background": false }),
    ),
];
/// The tool that takes a program in JavaScript, from which the shell can be called.
const CODE: &str = "exec";

fn shell(line: &str, tools: &[OfferedTool]) -> Result<TurnAction, String> {
    if tools.iter().any(|tool| tool.name == CODE && tool.takes_text) {
        let input = format!(
            "const r = await tools.exec_command({{cmd: {}}}); text(r.output);",
            Value::String(line.to_owned())
        );
        return Ok(TurnAction::Custom { name: CODE.to_owned(), input });
    }
    let offered = |(name, _): &&ShellTool| tools.iter().any(|tool| tool.name == *name);
    SHELLS
        .iter()
        .find(offered)
        .map(|(name, arguments)| TurnAction::Call { name: (*name).to_owned(), arguments: arguments(line) })
        .ok_or_else(|| {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("the step needs a shell, and there is none among {}", names.join(", "))
        })
}
