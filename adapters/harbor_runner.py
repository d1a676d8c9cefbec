"""`runner` as an agent of Harbor, for Terminal-Bench and whatever else Harbor runs.

    RUNNER_BIN=target/release/runner harbor run -d terminal-bench@2.0 \
        --agent-import-path adapters.harbor_runner:GoalRunner -m openai/gpt-5.5

The environment needs git, and the agent that the runner starts: RUNNER_AGENT (codex, claude, or the path of a scenario; codex
without it). RUNNER_GUARD is the guard's command (`true` without it: Harbor's own verifier judges the work).
"""

import json
import os
import shlex
import tempfile
from pathlib import Path

from harbor.agents.base import BaseAgent

# The goal is reached, the run is stuck, or a limit was reached: all are work to be judged, not failures of the harness.
JUDGED = {0, 3, 4}
PROGRAM = "/usr/local/bin/runner"


class GoalRunner(BaseAgent):
    program = PROGRAM

    @staticmethod
    def name():
        return "goal-runner"

    def version(self):
        return None

    async def setup(self, environment):
        await environment.upload_file(Path(os.environ["RUNNER_BIN"]), self.program)
        await self.call(environment, f"chmod 755 {self.program} && git --version && {self.program} --version")

    def configuration(self):
        agent = os.environ.get("RUNNER_AGENT", "codex")
        executor = {"kind": agent}
        if "/" in agent:
            executor = {"kind": "script", "scenario": agent}
        elif self.model_name:
            executor["model"] = self.model_name.split("/", 1)[-1]
        guard = shlex.split(os.environ.get("RUNNER_GUARD", "true"))
        lines = ["[executor]", *(f"{key} = {json.dumps(value)}" for key, value in executor.items())]
        return "\n".join([*lines, "[guard]", f"command = {json.dumps(guard)}", ""])

    async def run(self, instruction, environment, context):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in [("goal.md", instruction), ("config.toml", self.configuration())]:
                Path(folder, name).write_text(text)
                await environment.upload_file(Path(folder, name), f"/tmp/runner-{name}")
        await self.call(
            environment,
            "git rev-parse -q --verify HEAD >/dev/null 2>&1 || "
            "{ git init -q . && git add -A && "
            "git -c user.name=runner -c user.email=runner@localhost commit -q --allow-empty -m 'the starting point'; }",
        )
        await self.call(
            environment,
            f"{self.program} init && cp /tmp/runner-config.toml .runner/state/config.toml && "
            f"{self.program} start --goal-file /tmp/runner-goal.md",
        )
        done = await environment.exec(f"{self.program} --json loop")
        Path(self.logs_dir, "runner.loop.log").write_text((done.stdout or "") + (done.stderr or ""))
        if done.return_code not in JUDGED:
            raise RuntimeError(f"runner loop ended with {done.return_code}: {(done.stderr or '')[-2000:]}")
        end = json.loads((done.stdout or "").strip().splitlines()[-1])
        spent = end["spent"]
        # The runner counts tokens read and written together; which were which is in the log.
        context.metadata = {"exit": done.return_code, "why": end["why"], "tokens": spent["tokens"]}
        if end["cost"] != "unknown":
            context.cost_usd = spent["microdollars"] / 1e6

    async def call(self, environment, command):
        done = await environment.exec(command)
        if done.return_code != 0:
            raise RuntimeError(f"{command}: {done.return_code}: {done.stdout}{done.stderr}")
