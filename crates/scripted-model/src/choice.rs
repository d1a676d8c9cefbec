//! Chooses the answer to a request: the part of the script, the step, the fault and the tool.

use serde_json::{Value, json};

use crate::request_log::{LoggedRequest, RequestKind, ScriptState};
use crate::script::{InjectedFault, ModelAction, ModelScript, ScriptStep, ScriptUsage, StepCounter};
use crate::wire::{ModelRequest, ModelTurn, OfferedTool, TokenCounts, TurnAction};

pub(crate) enum ServerChoice {
    Answer(Box<ChosenAnswer>),
    /// Respond with status 400 and this message.
    Refuse(String),
}

pub(crate) struct ChosenAnswer {
    pub(crate) turn: ModelTurn,
    pub(crate) delay_ms: u64,
    pub(crate) fault: Option<InjectedFault>,
}

/// Texts by which to recognise a request for a summary of the conversation: Codex's and Claude Code's.
const SUMMARY_MARKERS: [&str; 2] = ["CONTEXT CHECKPOINT COMPACTION", "followed by a <summary> block"];
const SUMMARY: &str = "<analysis>as scripted</analysis>\n<summary>what happened so far</summary>";
const SIDE_ANSWER: &str = "ok";

/// The usage to report where the script gives none.
const DEFAULT_TOKENS: TokenCounts = TokenCounts { input: 1000, cached: 200, output: 50, reasoning: 10 };

/// Chooses the answer and records the choice in `logged`.
pub(crate) fn choose(
    script: &ModelScript,
    model_request: &ModelRequest,
    state: &mut ScriptState,
    logged: &mut LoggedRequest,
) -> ServerChoice {
    logged.tools = model_request.tools.iter().map(|tool| tool.name.clone()).collect();
    if logged.number >= script.requests_max {
        return ServerChoice::Refuse(format!("the script allows {} requests", script.requests_max));
    }
    let side_answer = |text: &str| {
        let action = TurnAction::Text(text.to_owned());
        let turn =
            ModelTurn { action, text: None, tokens: token_counts(script.usage), number: logged.number };
        ServerChoice::Answer(Box::new(ChosenAnswer { turn, delay_ms: 0, fault: None }))
    };
    if SUMMARY_MARKERS.iter().any(|marker| model_request.last.contains(marker)) {
        logged.kind = RequestKind::Summary;
        return side_answer(SUMMARY);
    }
    if model_request.tools.is_empty() {
        logged.kind = RequestKind::Side;
        return side_answer(SIDE_ANSWER);
    }
    let matching_part = script.parts.iter().enumerate().find(|(_, part)| part.matches(&model_request.prompt));
    let Some((index, part)) = matching_part else {
        return ServerChoice::Refuse("no part of the script matches the prompt".to_owned());
    };
    let session_key = (model_request.session.clone(), index);
    let count = match script.count {
        StepCounter::Results => model_request.results,
        StepCounter::Requests => state.served.get(&session_key).copied().unwrap_or(0),
    };
    let position = count.min(part.steps.len().saturating_sub(1));
    let Some(step) = part.steps.get(position) else {
        return ServerChoice::Refuse("the matching part of the script has no step".to_owned());
    };
    logged.kind = RequestKind::Step;
    logged.part = Some(index);
    logged.step = Some(position);
    let fault = next_fault(step, index, position, state);
    logged.fault = fault.as_ref().map(InjectedFault::name);
    if fault.is_none() {
        *state.served.entry(session_key).or_default() += 1;
    }
    match turn_action(step, &model_request.tools) {
        Ok(action) => {
            let tokens = token_counts(step.usage.or(script.usage));
            let turn = ModelTurn { action, text: step.text.clone(), tokens, number: logged.number };
            ServerChoice::Answer(Box::new(ChosenAnswer { turn, delay_ms: step.delay_ms, fault }))
        }
        Err(why) => ServerChoice::Refuse(why),
    }
}

/// The first fault of the step that still has repetitions left.
fn next_fault(
    step: &ScriptStep,
    part: usize,
    position: usize,
    state: &mut ScriptState,
) -> Option<InjectedFault> {
    for (index, fault) in step.faults.iter().enumerate() {
        let injected = state.faults.entry((part, position, index)).or_default();
        if fault.times.is_none_or(|times| *injected < times) {
            *injected += 1;
            return Some(fault.what.clone());
        }
    }
    None
}

fn token_counts(usage: ScriptUsage) -> TokenCounts {
    TokenCounts {
        input: usage.input.unwrap_or(DEFAULT_TOKENS.input),
        cached: usage.cached.unwrap_or(DEFAULT_TOKENS.cached),
        output: usage.output.unwrap_or(DEFAULT_TOKENS.output),
        reasoning: usage.reasoning.unwrap_or(DEFAULT_TOKENS.reasoning),
    }
}

fn turn_action(step: &ScriptStep, tools: &[OfferedTool]) -> Result<TurnAction, String> {
    let call = |name: &str, arguments: Value| TurnAction::Call { name: name.to_owned(), arguments };
    Ok(match &step.action {
        // Such a step has a fault without `times`, so this answer is never sent.
        None => TurnAction::Text(SIDE_ANSWER.to_owned()),
        Some(ModelAction::Shell(line)) => shell_call(line, tools)?,
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

/// A shell tool of a supported agent: its name, and its arguments for a command line.
type ShellTool = (&'static str, fn(&str) -> Value);
const SHELL_TOOLS: [ShellTool; 7] = [
    ("exec_command", |line| json!({ "cmd": line })),
    ("shell_command", |line| json!({ "command": line })),
    ("shell", |line| json!({ "command": ["bash", "-lc", line] })),
    ("Bash", |line| json!({ "command": line, "description": "as scripted" })),
    ("bash", |line| json!({ "command": line, "description": "as scripted" })),
    (
        "run_shell_command",
        |line| json!({ "command": line, "description": "as scripted", "is_background": false }),
    ),
    (
        "run_terminal_command",
        |line| json!({ "command": line, "description": "as scripted", "is_background": false }),
    ),
];
/// Codex's code mode: this tool takes a JavaScript program, which can call the shell.
const CODE_TOOL: &str = "exec";

fn shell_call(line: &str, tools: &[OfferedTool]) -> Result<TurnAction, String> {
    if tools.iter().any(|tool| tool.name == CODE_TOOL && tool.takes_text) {
        let input = format!(
            "const r = await tools.exec_command({{cmd: {}}}); text(r.output);",
            Value::String(line.to_owned())
        );
        return Ok(TurnAction::Custom { name: CODE_TOOL.to_owned(), input });
    }
    SHELL_TOOLS
        .iter()
        .find(|(name, _)| tools.iter().any(|tool| tool.name == *name))
        .map(|(name, arguments)| TurnAction::Call { name: (*name).to_owned(), arguments: arguments(line) })
        .ok_or_else(|| {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("the step needs a shell tool; the request offers only: {}", names.join(", "))
        })
}
