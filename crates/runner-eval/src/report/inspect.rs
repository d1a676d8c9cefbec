//! Renders the results of one agent as a log of Inspect, in its JSON format.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::transcript::{AgentAction, goal, sessions};
use super::{TrialHistory, by_trial};
use crate::result::TrialOutcome;
use crate::result::stored_trial::StoredTrial;
use crate::stats::score::ScoreRow;

/// The name of the scorer in the log.
const SCORER: &str = "checks";

/// The log: each trial is a sample, its number the epoch. A trial that is not scored is an error without a score.
pub(crate) fn inspect(name: &str, agent: &ScoreRow, trials: &[StoredTrial]) -> Value {
    let mut epochs: BTreeMap<&str, u32> = BTreeMap::new();
    let mut samples = Vec::new();
    for history in by_trial(trials) {
        let epoch = epochs.entry(&history.last.meta.case_id).or_default();
        *epoch += 1;
        samples.push(sample(&history, *epoch));
    }
    let cases: Vec<&str> = epochs.keys().copied().collect();
    let started_at = trials.iter().map(|trial| trial.meta.started_at.as_str()).min().unwrap_or_default();
    let ended_at = trials.iter().map(|trial| trial.meta.ended_at.as_str()).max();
    json!({
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": name,
            "run_id": name,
            "created": started_at,
            "task": "runner-eval",
            "task_id": name,
            "dataset": { "name": "cases", "samples": cases.len(), "sample_ids": cases },
            "model": format!("runner/{}", agent.agent),
            "config": { "epochs": epochs.values().max() },
        },
        "plan": { "name": "runner loop", "steps": [] },
        "results": {
            "total_samples": samples.len(),
            "completed_samples": agent.score.n,
            "scores": [{
                "name": SCORER,
                "scorer": SCORER,
                "scored_samples": agent.score.n,
                "unscored_samples": agent.score.unscored,
                "metrics": metrics(agent),
            }],
        },
        "stats": { "started_at": started_at, "completed_at": ended_at },
        "samples": samples,
    })
}

fn metrics(agent: &ScoreRow) -> Value {
    let mut metrics = Map::new();
    for (name, value) in [
        ("accuracy", agent.rate.value),
        ("wilson_low", agent.rate.interval.map(|interval| interval.low)),
        ("wilson_high", agent.rate.interval.map(|interval| interval.high)),
    ] {
        if let Some(value) = value {
            metrics.insert(name.to_owned(), json!({ "name": name, "value": value }));
        }
    }
    metrics.into()
}

fn sample(history: &TrialHistory<'_>, epoch: u32) -> Value {
    let trial = history.last;
    let meta = &trial.meta;
    let mut sample = json!({
        "id": meta.case_id,
        "epoch": epoch,
        "input": goal(trial).unwrap_or_else(|| meta.case_id.clone()),
        "target": "",
        "messages": messages(trial),
        "metadata": {
            "run": meta.run,
            "trial": meta.trial,
            "attempts": history.earlier.len() + 1,
            "outcome": meta.outcome,
            "cause": meta.cause,
            "iterations": meta.iterations,
            "tokens": meta.tokens,
            "cost_usd": meta.cost.usd(),
            "checks": trial.checks.checks,
        },
        "total_time": meta.wall_secs,
        "started_at": meta.started_at,
        "completed_at": meta.ended_at,
    });
    let why = meta.why.clone().unwrap_or_else(|| meta.outcome.to_string());
    let (key, value) = if meta.is_scored() {
        let value = if meta.outcome == TrialOutcome::Success { "C" } else { "I" };
        ("scores", json!({ SCORER: { "value": value, "explanation": why } }))
    } else {
        ("error", json!({ "message": why, "traceback": "", "traceback_ansi": "" }))
    };
    if let Some(keys) = sample.as_object_mut() {
        keys.insert(key.to_owned(), value);
    }
    sample
}

fn messages(trial: &StoredTrial) -> Vec<Value> {
    let mut messages = Vec::new();
    for session in sessions(trial) {
        messages.push(json!({ "role": "user", "content": session.prompt }));
        for action in &session.actions {
            match action {
                AgentAction::Message(text) => messages.push(json!({ "role": "assistant", "content": text })),
                AgentAction::Reasoning(text) => messages.push(json!({
                    "role": "assistant",
                    "content": [{ "type": "reasoning", "reasoning": text }],
                })),
                AgentAction::ToolCall { name, input, output } => {
                    let id = format!("call-{}", messages.len() + 1);
                    let call = json!({ "id": id, "function": name, "arguments": input, "type": "function" });
                    messages.push(json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
                    let output = output.as_deref().unwrap_or_default();
                    messages.push(
                        json!({ "role": "tool", "content": output, "tool_call_id": id, "function": name }),
                    );
                }
            }
        }
        messages.push(json!({ "role": "assistant", "content": session.answer }));
        messages.push(json!({ "role": "system", "content": session.outcome }));
    }
    messages
}
