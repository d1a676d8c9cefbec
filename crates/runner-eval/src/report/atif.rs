//! A trial as a trajectory in the Agent Trajectory Interchange Format, version 1.7, which Harbor reads.

use serde_json::{Value, json};

use super::transcript::{AgentAction, TranscriptSession, sessions};
use crate::result::stored_trial::StoredTrial;

const VERSION: &str = "ATIF-v1.7";

/// The trajectory: each session's prompt, what the agent did, its answer with what that used, and what came of it.
pub(crate) fn atif(trial: &StoredTrial) -> Value {
    let meta = &trial.meta;
    let mut steps = Vec::new();
    for session in sessions(trial) {
        add(&mut steps, &session);
    }
    if steps.is_empty() {
        // A trajectory has at least one step.
        let told = meta.why.clone().unwrap_or_else(|| "no session was begun".to_owned());
        steps.push(json!({ "source": "system", "message": told }));
    }
    for (step, nth) in steps.iter_mut().zip(1..) {
        if let Some(keys) = step.as_object_mut() {
            keys.insert("step_id".to_owned(), Value::from(nth));
        }
    }
    let (kind, model) = meta.agent.split_once(':').map_or((meta.agent.as_str(), None), |(a, b)| (a, Some(b)));
    let totals = total(&steps);
    json!({
        "schema_version": VERSION,
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

fn add(steps: &mut Vec<Value>, session: &TranscriptSession) {
    steps.push(json!({ "source": "user", "message": session.prompt }));
    for act in &session.acts {
        steps.push(match act {
            AgentAction::Said(text) => json!({ "source": "agent", "message": text }),
            AgentAction::Thought(text) => {
                json!({ "source": "agent", "message": "", "reasoning_content": text })
            }
            AgentAction::Called { name, input, output } => {
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
    let metrics = metrics(&session.usage);
    steps.push(without_null(json!({ "source": "agent", "message": session.answer, "metrics": metrics })));
    steps.push(json!({ "source": "system", "message": session.outcome }));
}

/// What a session used; nothing if nothing is known.
fn metrics(usage: &Value) -> Option<Value> {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let metrics = without_null(json!({
        "prompt_tokens": number("input_tokens"),
        "completion_tokens": number("output_tokens"),
        "cached_tokens": number("cached_input_tokens"),
        "cost_usd": number("cost_microdollars").map(|micro| micro as f64 / 1e6),
    }));
    metrics.as_object().is_some_and(|keys| !keys.is_empty()).then_some(metrics)
}

/// The sums of what is known.
fn total(steps: &[Value]) -> Value {
    let known = |key: &str| -> Vec<f64> {
        steps.iter().filter_map(|step| step.pointer(&format!("/metrics/{key}"))?.as_f64()).collect()
    };
    let sum =
        |key: &str| Some(known(key)).filter(|list| !list.is_empty()).map(|list| list.iter().sum::<f64>());
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

/// An object without the keys of which nothing is known.
fn without_null(mut value: Value) -> Value {
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    value
}
