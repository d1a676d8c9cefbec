//! The Kubernetes manifests of a run: an Indexed Job with a pod per partition, and a Job that merges.

use serde_json::{Value, json};

use crate::args::{K8sArgs, PodSecurity, SubmitScope};
use crate::plan::partition::PARTITIONS_VARIABLE;

/// `generateName` adds five characters, and the names of pods add an index; both must stay below 63.
const NAME_PREFIX_MAX: usize = 40;
/// Exit codes of `runner eval run` that another pod would only repeat: unexpected results, usage errors, budget.
const FINAL_EXITS: [u8; 3] = [1, 2, 4];

/// How long a trial may take besides its loop: setup, checks, and the start of a pod on a busy cluster.
const MERGE_IDLE_SECS: u32 = 3_600;
/// Merges again and again until nothing is missing (exit 0), or until nothing has changed for `$2` seconds (exit 1).
const MERGE_SCRIPT: &str = "\
poll=${EVAL_MERGE_POLL_SECS:-30}; idle=0; last=
until found=$(runner-eval -C \"$0\" merge --run \"$1\"); do
  if [ \"$found\" = \"$last\" ]; then idle=$((idle + poll)); else idle=0; last=$found; fi
  if [ \"$idle\" -ge \"$2\" ]; then printf '%s\\n' \"$found\"; exit 1; fi
  sleep \"$poll\"
done
printf '%s\\n' \"$found\"";

/// Both jobs as one document of JSON, which is also YAML.
pub(super) fn manifests(args: &K8sArgs, run: &str, wall_secs_max: u32) -> String {
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [indexed_job(args, run), merge_job(args, run, wall_secs_max)],
    });
    format!("{list:#}\n")
}

/// A name that Kubernetes accepts: lower case letters, digits and single dashes, not at the ends. Every submission gets a
/// suffix of its own, so that the same run can be submitted again.
fn name_prefix(kind: &str, run: &str) -> String {
    let mut name = String::new();
    for c in format!("{kind}-{run}").to_lowercase().chars() {
        let is_dash = !c.is_ascii_alphanumeric();
        if !(is_dash && name.ends_with('-')) {
            name.push(if is_dash { '-' } else { c });
        }
    }
    let short: String = name.chars().take(NAME_PREFIX_MAX).collect();
    format!("{}-", short.trim_end_matches('-'))
}

fn metadata(kind: &str, run: &str) -> Value {
    let label: String = name_prefix("run", run).trim_end_matches('-').to_owned();
    json!({ "generateName": name_prefix(kind, run), "labels": { "app": "runner-eval", "run": label } })
}

fn indexed_job(args: &K8sArgs, run: &str) -> Value {
    let SubmitScope { partitions, jobs, .. } = &args.common;
    let mut command: Vec<String> =
        ["runner-eval", "-C", &args.mount, "run", "--continue", "--run", run, "--jobs"]
            .map(str::to_owned)
            .into();
    command.push(jobs.to_string());
    command.extend(super::passed_options(&args.common, 1));
    let mut spec = json!({
        "completionMode": "Indexed",
        "completions": partitions,
        "parallelism": args.throttle.unwrap_or(*partitions),
        "backoffLimitPerIndex": 3,
        "maxFailedIndexes": partitions,
        "podFailurePolicy": { "rules": [
            { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": FINAL_EXITS } },
            { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        ] },
        "template": { "spec": pod(args, &command, &[(PARTITIONS_VARIABLE, &partitions.to_string())]) },
    });
    if let (Some(deadline), Some(spec)) = (args.deadline_secs, spec.as_object_mut()) {
        spec.insert("activeDeadlineSeconds".to_owned(), json!(deadline));
    }
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("eval", run), "spec": spec })
}

/// Waits until every trial has a result, because a Job cannot depend on another. Pods may have ended without all results, at the
/// budget for example, so it also ends when no result has come for longer than a trial can take.
fn merge_job(args: &K8sArgs, run: &str, wall_secs_max: u32) -> Value {
    let idle_secs = wall_secs_max.saturating_add(MERGE_IDLE_SECS);
    let command = [
        "sh".to_owned(),
        "-c".to_owned(),
        MERGE_SCRIPT.to_owned(),
        args.mount.clone(),
        run.to_owned(),
        idle_secs.to_string(),
    ];
    let mut spec = json!({ "backoffLimit": 0, "template": { "spec": pod(args, &command, &[]) } });
    if let (Some(deadline), Some(spec)) = (args.deadline_secs, spec.as_object_mut()) {
        spec.insert("activeDeadlineSeconds".to_owned(), json!(deadline));
    }
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("eval-merge", run), "spec": spec })
}

fn pod(args: &K8sArgs, command: &[String], variables: &[(&str, &str)]) -> Value {
    let mut env = Vec::new();
    for (name, value) in variables {
        env.push(json!({ "name": name, "value": value }));
    }
    let secrets: Vec<Value> =
        args.secret.iter().map(|name| json!({ "secretRef": { "name": name } })).collect();
    let mut resources = serde_json::Map::new();
    for (name, value) in [("cpu", &args.cpu), ("memory", &args.memory)] {
        if let Some(value) = value {
            resources.insert(name.to_owned(), json!(value));
        }
    }
    let PodSecurity { user, seccomp, unmask_proc, privileged } = &args.security;
    let mut security = json!({ "seccompProfile": { "type": seccomp } });
    if let Some(security) = security.as_object_mut() {
        if *unmask_proc {
            security.insert("procMount".to_owned(), json!("Unmasked"));
        }
        if *privileged {
            security.insert("privileged".to_owned(), json!(true));
        }
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "eval",
            "image": args.image,
            "command": command,
            "env": env,
            "envFrom": secrets,
            "resources": { "requests": resources, "limits": resources },
            "securityContext": security,
            "volumeMounts": [{ "name": "eval", "mountPath": args.mount }],
        }],
        "volumes": [{ "name": "eval", "persistentVolumeClaim": { "claimName": args.claim } }],
    });
    if let Some(spec) = spec.as_object_mut() {
        if let Some(user) = user {
            let context = json!({ "runAsUser": user, "runAsGroup": user, "fsGroup": user });
            spec.insert("securityContext".to_owned(), context);
        }
        if *unmask_proc {
            // Kubernetes allows an unmasked /proc only there.
            spec.insert("hostUsers".to_owned(), json!(false));
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_for_every_run() {
        for run in ["nightly", "run-", "A_b..c", &"x".repeat(128), "20261116T050003Z"] {
            let name = name_prefix("eval-merge", run);
            assert!(name.len() <= NAME_PREFIX_MAX + 1, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(!name.contains("--") && name.ends_with('-') && name.starts_with("eval"), "{name}");
        }
    }
}
