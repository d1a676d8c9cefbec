//! Renders a trial as a trajectory in the Agent Trajectory Interchange Format, version 1.7, which Harbor reads.

use runner_core::step::Usage;
use serde_json::{Value, json};

use super::transcript::{AgentAction, TranscriptSession, sessions};
use crate::result::stored_trial::StoredTrial;

const ATIF_VERSION: &str = "ATIF-v1.7";

/// The trajectory: for each session its prompt, the agent's actions, its answer with the usage, and the outcome.
pub(crate) fn atif(trial: &StoredTrial) -> Value {
    let meta = &trial.meta;
    let mut steps = Vec::new();
    for session in sessions(trial) {
        add_session(&mut steps, &session);
    }
    if steps.is_empty() {
        // The format requires at least one step.
        let message = meta.why.clone().unwrap_or_else(|| "no session started".to_owned());
        steps.push(json!({ "source": "system", "message": message }));
    }
    for (step, number) in steps.iter_mut().zip(1..) {
        if let Some(keys) = step.as_object_mut() {
            keys.insert("step_id".to_owned(), Value::from(number));
        }
    }
    let (kind, model) = match meta.agent.split_once(':') {
        Some((kind, model)) => (kind, Some(model)),
        None => (meta.agent.as_str(), None),
    };
    let totals = total_metrics(&steps);
    json!({
        "schema_version": ATIF_VERSION,
        "session_id": format!("{}/{}", meta.case_id, meta.eval_run_id),
        "agent": without_null(json!({
            "name": format!("runner+{kind}"),
            "version": meta.runner.version,
            "model_name": model,
        })),
        "steps": steps,
        "final_metrics": totals,
        "extra": {
            "case": meta.case_id,
            "outcome": meta.outcome,
            "cause": meta.cause,
            "scored": meta.is_scored(),
            "tokens": meta.tokens,
            "cost_usd": meta.cost.usd(),
        },
    })
}

fn add_session(steps: &mut Vec<Value>, session: &TranscriptSession) {
    steps.push(json!({ "source": "user", "message": session.prompt }));
    for action in &session.actions {
        steps.push(match action {
            AgentAction::Message(text) => json!({ "source": "agent", "message": text }),
            AgentAction::Reasoning(text) => {
                json!({ "source": "agent", "message": "", "reasoning_content": text })
            }
            AgentAction::ToolCall { name, input, output } => {
                let id = format!("call-{}", steps.len() + 1);
                let call = json!({ "tool_call_id": id, "function_name": name, "arguments": input });
                let results: Vec<Value> =
                    output.iter().map(|text| json!({ "source_call_id": id, "content": text })).collect();
                let observation = (!results.is_empty()).then(|| json!({ "results": results }));
                without_null(json!({
                    "source": "agent",
                    "message": "",
                    "tool_calls": [call],
                    "observation": observation,
                }))
            }
        });
    }
    let metrics = session.usage.as_ref().and_then(session_metrics);
    steps.push(without_null(json!({ "source": "agent", "message": session.answer, "metrics": metrics })));
    steps.push(json!({ "source": "system", "message": session.outcome }));
}

/// The usage of a session; none if it is unknown.
fn session_metrics(usage: &Usage) -> Option<Value> {
    let metrics = without_null(json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_input_tokens,
        "cost_usd": usage.cost_microdollars.map(|micro| micro as f64 / 1e6),
    }));
    metrics.as_object().is_some_and(|keys| !keys.is_empty()).then_some(metrics)
}

/// Sums over the steps; null where no step has the value.
fn total_metrics(steps: &[Value]) -> Value {
    let sum = |key: &str| -> Option<f64> {
        let path = format!("/metrics/{key}");
        let values: Vec<f64> = steps.iter().filter_map(|step| step.pointer(&path)?.as_f64()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of counts")]
    let count = |key: &str| sum(key).map(|sum| sum as u64);
    without_null(json!({
        "total_prompt_tokens": count("prompt_tokens"),
        "total_completion_tokens": count("completion_tokens"),
        "total_cached_tokens": count("cached_tokens"),
        "total_cost_usd": sum("cost_usd"),
        "total_steps": steps.len(),
    }))
}

/// Removes the keys whose value is null.
fn without_null(mut value: Value) -> Value {
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    value
}
