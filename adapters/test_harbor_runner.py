"""The agent for Harbor, in a folder of this machine instead of a container: RUNNER_BIN=… python adapters/test_harbor_runner.py"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harbor.environments.base import ExecResult
from harbor.models.agent.context import AgentContext
from harbor_runner import GoalRunner


class Folder:
    """As much of an environment as the agent uses."""

    def __init__(self, root):
        self.root = root

    async def upload_file(self, source, target):
        shutil.copy(source, target)

    async def exec(self, command):
        done = subprocess.run(command, shell=True, cwd=self.root, capture_output=True, text=True)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)


def play(scenario):
    place = Path(tempfile.mkdtemp())
    (place / "work").mkdir()
    (place / "agent.toml").write_text(scenario)
    os.environ["RUNNER_AGENT"] = str(place / "agent.toml")
    agent = GoalRunner(logs_dir=place)
    agent.program = str(place / "runner")
    environment, context = Folder(place / "work"), AgentContext()
    asyncio.run(agent.setup(environment))
    asyncio.run(agent.run("Write done.txt", environment, context))
    return place / "work", context


work, context = play(
    '[[session]]\nanswer = { status = "done", summary = "done" }\n'
    '[[session.do]]\nwrite = { path = "done.txt", text = "done" }\n'
    "[[session.do]]\nreport = { input_tokens = 7, cost_microdollars = 500000 }\n"
)
assert (work / "done.txt").read_text() == "done"
assert (context.cost_usd, context.metadata["exit"]) == (0.5, 0), context
_, context = play('[[session]]\nanswer = { status = "retry", summary = "no" }\n')
assert context.metadata["exit"] == 3, context
print("the agent works: done and stuck are both work to be judged")
