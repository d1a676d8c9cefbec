"""`runner` as a Harbor agent, for Terminal-Bench and other suites that Harbor runs.

    RUNNER_BIN=target/release/runner harbor run -d terminal-bench@2.0 \
        --agent-import-path adapters.harbor_runner:GoalRunner -m openai/gpt-5.5

The environment needs git and the agent that the runner starts. RUNNER_AGENT names it: codex (the default), claude, or the path
of a scenario. RUNNER_GUARD is the guard command; the default is `true`, because Harbor's own verifier checks the work.
"""

import json
import os
import shlex
import tempfile
from pathlib import Path

from harbor.agents.base import BaseAgent

# Complete, stuck, limit reached: the verifier checks the work. Any other exit code is a failure of the harness.
VERIFIABLE_EXIT_CODES = {0, 3, 4}
RUNNER_PATH = "/usr/local/bin/runner"


class GoalRunner(BaseAgent):
    runner_path = RUNNER_PATH

    @staticmethod
    def name():
        return "goal-runner"

    def version(self):
        return None

    async def setup(self, environment):
        await environment.upload_file(Path(os.environ["RUNNER_BIN"]), self.runner_path)
        await self.run_command(environment, f"chmod 755 {self.runner_path} && git --version && {self.runner_path} --version")

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
        await self.run_command(
            environment,
            "git rev-parse -q --verify HEAD >/dev/null 2>&1 || "
            "{ git init -q . && git add -A && "
            "git -c user.name=runner -c user.email=runner@localhost commit -q --allow-empty -m 'Initial files'; }",
        )
        await self.run_command(
            environment,
            f"{self.runner_path} init && cp /tmp/runner-config.toml .runner/state/config.toml && "
            f"{self.runner_path} start --goal-file /tmp/runner-goal.md",
        )
        loop = await environment.exec(f"{self.runner_path} --json loop")
        Path(self.logs_dir, "runner.loop.log").write_text((loop.stdout or "") + (loop.stderr or ""))
        if loop.return_code not in VERIFIABLE_EXIT_CODES:
            raise RuntimeError(f"runner loop exited with {loop.return_code}: {(loop.stderr or '')[-2000:]}")
        end = json.loads((loop.stdout or "").strip().splitlines()[-1])
        spent = end["spent"]
        # The runner reports input and output tokens as one sum; the log has them separately.
        context.metadata = {"exit": loop.return_code, "why": end["why"], "tokens": spent["tokens"]}
        if end["cost"] != "unknown":
            context.cost_usd = spent["microdollars"] / 1e6

    async def run_command(self, environment, command):
        result = await environment.exec(command)
        if result.return_code != 0:
            raise RuntimeError(f"`{command}` exited with {result.return_code}: {result.stdout}{result.stderr}")
