"""`runner` as a Harbor agent, for Terminal-Bench and other suites that Harbor runs.

    RUNNER_BIN=target/release/runner harbor run -d terminal-bench@2.0 \
        --agent-import-path adapters.harbor_runner:GoalRunner -m openai/gpt-6.1-sol

The environment needs git and the agent that the runner starts. RUNNER_AGENT names it: codex (the default), claude, or the path
of a scenario. RUNNER_GUARD is the guard command; the default is `true`, because Harbor's own verifier checks the work. Tokens, cost and
a trajectory (ATIF) come from the events of the loop.
"""

import json
import os
import shlex
import tempfile
from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities

# Where the environment gets the runner; RUNNER_PATH names another place if that one is read-only.
RUNNER_PATH = os.environ.get("RUNNER_PATH", "/usr/local/bin/runner")
# Harbor collects this folder, also if it stops the agent at its time limit.
LOGS_PATH = "/logs/agent"
# Kinds of agent events that are actions, with the key of their input.
ACTIONS = {"command": "command", "edit": "files", "read": "path", "search": "query", "web": "query", "tool": "input"}


class GoalRunner(BaseAgent):
    capabilities = AgentCapabilities(atif=True)
    runner_path = RUNNER_PATH
    logs_path = LOGS_PATH

    @staticmethod
    def name():
        return "goal-runner"

    def version(self):
        return getattr(self, "runner_version", None)

    async def setup(self, environment):
        await environment.upload_file(Path(os.environ["RUNNER_BIN"]), self.runner_path)
        command = f"chmod 755 {self.runner_path} && git --version >/dev/null && {self.runner_path} --version"
        result = await self.run_command(environment, command)
        self.runner_version = (result.stdout or "").strip().split(" ")[-1]

    def configuration(self):
        agent = os.environ.get("RUNNER_AGENT", "codex")
        executor = {"kind": agent}
        if "/" in agent:
            executor = {"kind": "script", "scenario": "/tmp/runner-scenario.toml"}
        elif self.model_name:
            executor["model"] = self.model_name.split("/", 1)[-1]
        guard = shlex.split(os.environ.get("RUNNER_GUARD", "true"))
        lines = ["[executor]", *(f"{key} = {json.dumps(value)}" for key, value in executor.items())]
        return "\n".join([*lines, "[guard]", f"command = {json.dumps(guard)}", ""])

    async def run(self, instruction, environment, context):
        with tempfile.TemporaryDirectory() as folder:
            files = [("goal.md", instruction), ("config.toml", self.configuration())]
            # The environment does not see the files of the machine that Harbor runs on.
            agent = os.environ.get("RUNNER_AGENT", "")
            files += [("scenario.toml", Path(agent).read_text())] if "/" in agent else []
            for name, text in files:
                Path(folder, name).write_text(text)
                await environment.upload_file(Path(folder, name), f"/tmp/runner-{name}")
        # What the task brings is not the agent's work: it is committed first.
        await self.run_command(
            environment,
            "git rev-parse -q --git-dir >/dev/null 2>&1 || git init -q .; git add -A -- . ':(exclude).runner' && "
            "{ git diff --cached --quiet && git rev-parse -q --verify HEAD >/dev/null 2>&1 || "
            "git -c user.name=runner -c user.email=runner@localhost commit -q --allow-empty -m 'Files of the task'; }",
        )
        # A later step of a task finds the run of the earlier one. A goal without an id starts a new run.
        await self.run_command(
            environment,
            f"if [ -d .runner ]; then cp /tmp/runner-goal.md .runner/GOAL.md && {self.runner_path} start; "
            f"else {self.runner_path} init && cp /tmp/runner-config.toml .runner/state/config.toml && "
            f"{self.runner_path} start --goal-file /tmp/runner-goal.md; fi",
        )
        log = f"{self.logs_path}/runner.loop.log"
        loop = await environment.exec(
            f"mkdir -p {self.logs_path} && {self.runner_path} --json loop > {log} 2> {self.logs_path}/runner.loop.err"
        )
        output = (await self.run_command(environment, f"cat {log}")).stdout or ""
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.record(events, instruction, context, loop.return_code)
        # Without any session nothing was measured. After one, the verifier judges what there is, however the loop ended.
        if not any(event.get("event") == "agent_ended" for event in events):
            raise RuntimeError(f"runner loop exited with {loop.return_code} before the first session: {output[-2000:]}")

    def record(self, events, instruction, context, code):
        """Fills Harbor's context and writes the trajectory."""
        steps = trajectory_steps(events, instruction)
        totals = total_metrics(steps)
        context.n_input_tokens = totals.get("total_prompt_tokens")
        context.n_cache_tokens = totals.get("total_cached_tokens")
        context.n_output_tokens = totals.get("total_completion_tokens")
        context.cost_usd = totals.get("total_cost_usd")
        stops = [event for event in events if event.get("event") == "stopped"]
        context.metadata = {"exit": code, "stop": stops[-1]["stop"] if stops else None}
        trajectory = {
            "schema_version": "ATIF-v1.7",
            "session_id": next((event["run_id"] for event in events if "run_id" in event), "none"),
            "agent": {"name": self.name(), "version": self.version() or "unknown", "model_name": self.model_name or "default"},
            "steps": steps,
            "final_metrics": {**totals, "total_steps": len(steps)},
        }
        Path(self.logs_dir, "trajectory.json").write_text(json.dumps(trajectory, indent=2))

    async def run_command(self, environment, command):
        result = await environment.exec(command)
        if result.return_code != 0:
            raise RuntimeError(f"`{command}` exited with {result.return_code}: {result.stdout}{result.stderr}")
        return result


def trajectory_steps(events, instruction):
    """The steps of a trajectory: the instruction, and for each session its task, its actions, its usage and its outcome."""
    steps = [{"source": "user", "message": instruction}]
    for event in events:
        kind = event.get("event")
        if kind == "planned":
            steps.append({"source": "user", "message": f"Task {event.get('node')}: {event.get('title')}"})
        elif kind == "agent" and event.get("kind") in ("message", "reasoning"):
            key = "message" if event["kind"] == "message" else "reasoning_content"
            steps.append({"source": "agent", "message": "", key: event.get("text", "")})
        elif kind == "agent" and event.get("kind") in ACTIONS and event.get("state") != "started":
            call = {"tool_call_id": f"call-{len(steps)}", "function_name": event.get("name", event["kind"])}
            call["arguments"] = {ACTIONS[event["kind"]]: event.get(ACTIONS[event["kind"]])}
            step = {"source": "agent", "message": "", "tool_calls": [call]}
            if event.get("output"):
                step["observation"] = {"results": [{"source_call_id": call["tool_call_id"], "content": event["output"]}]}
            steps.append(step)
        elif kind == "agent_ended":
            metrics = session_metrics(event.get("usage") or {})
            steps.append({"source": "agent", "message": "end of the session", **({"metrics": metrics} if metrics else {})})
        elif kind == "decided":
            steps.append({"source": "system", "message": f"outcome: {event['outcome']}; guard: {event['guard']}"})
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    return steps


def session_metrics(usage):
    """The usage of a session in ATIF's words, without what is unknown."""
    cost = usage.get("cost_microdollars")
    metrics = {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "cached_tokens": usage.get("cached_input_tokens"),
        "cost_usd": None if cost is None else cost / 1e6,
    }
    return {name: value for name, value in metrics.items() if value is not None}


def total_metrics(steps):
    """Sums over the sessions, without what no session reported."""
    totals = {}
    for step in steps:
        for name, value in step.get("metrics", {}).items():
            totals[f"total_{name}"] = totals.get(f"total_{name}", 0) + value
    return totals
