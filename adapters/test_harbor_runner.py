"""Tests the Harbor agent in a local folder instead of a container: RUNNER_BIN=… python adapters/test_harbor_runner.py"""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harbor.environments.base import ExecResult
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Trajectory
from harbor_runner import GoalRunner


class LocalEnvironment:
    """The part of a Harbor environment that the agent uses."""

    def __init__(self, root):
        self.root = root

    async def upload_file(self, source, target):
        shutil.copy(source, target)

    async def exec(self, command):
        process = subprocess.run(command, shell=True, cwd=self.root, capture_output=True, text=True)
        return ExecResult(stdout=process.stdout, stderr=process.stderr, return_code=process.returncode)


def run_scenario(scenario):
    folder = Path(tempfile.mkdtemp())
    (folder / "work").mkdir()
    (folder / "agent.toml").write_text(scenario)
    os.environ["RUNNER_AGENT"] = str(folder / "agent.toml")
    agent = GoalRunner(logs_dir=folder)
    agent.runner_path = str(folder / "runner")
    agent.logs_path = str(folder / "logs")
    environment = LocalEnvironment(folder / "work")
    context = AgentContext()
    asyncio.run(agent.setup(environment))
    asyncio.run(agent.run("Write done.txt", environment, context))
    trajectory = Trajectory.model_validate(json.loads((folder / "trajectory.json").read_text()))
    return folder / "work", context, trajectory


work, context, trajectory = run_scenario(
    '[[session]]\nanswer = { status = "done", summary = "done" }\n'
    '[[session.do]]\nwrite = { path = "done.txt", text = "done" }\n'
    "[[session.do]]\nreport = { input_tokens = 7, cached_input_tokens = 2, output_tokens = 3, cost_microdollars = 500000 }\n"
)
assert (work / "done.txt").read_text() == "done"
assert (context.cost_usd, context.metadata["exit"]) == (0.5, 0), context
assert (context.n_input_tokens, context.n_cache_tokens, context.n_output_tokens) == (7, 2, 3), context
assert trajectory.final_metrics.total_prompt_tokens == 7, trajectory
_, context, _ = run_scenario('[[session]]\nanswer = { status = "retry", summary = "no" }\n')
assert context.metadata["exit"] == 3, context
# An agent that never answers leaves work for the verifier all the same.
_, context, _ = run_scenario("[[session]]\n[[session.do]]\nexit = { code = 1 }\n")
assert context.metadata["exit"] == 1, context
print("ok: complete, stuck and failed runs leave work for the verifier, with tokens and a valid trajectory")
