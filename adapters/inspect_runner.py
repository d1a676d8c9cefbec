"""The cases of `runner eval` as a task of Inspect.

    inspect eval adapters/inspect_runner.py --model mockllm/model -T cases=eval/cases -T tag=scripted
    inspect eval adapters/inspect_runner.py --model mockllm/model -T agent=codex:gpt-5.5 --epochs 5

Each case is a sample. The loop is made by `runner-eval`, with the agent that `-T agent=` names (without it, the one that a case
names itself), and not by Inspect's model. A trial that says nothing about the agent (provider, harness, a missing
program) is an error of the sample, never a 0.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr
from inspect_ai.solver import solver
from inspect_ai.util import subprocess as inspect_subprocess

EVAL = os.environ.get("RUNNER_EVAL", "runner-eval")
# What says nothing about the agent.
NOT_SCORED = {"provider", "harness", "missing_tool", "interrupted"}


def told(done):
    """What runner-eval printed; 1 says that a case ended otherwise than its file says, which is a result too."""
    if done.returncode not in (0, 1):
        raise RuntimeError(f"runner-eval ended with {done.returncode}: {done.stderr}")
    return done.stdout


@solver
def runner_loop(cases, agent, runner):
    async def solve(state, generate):
        results = Path(tempfile.mkdtemp(prefix="inspect-runner-"))
        words = ["run", state.metadata["case"], "--json", "--run", "inspect", "--cases", cases]
        words += ["--results", str(results / "results"), "--workspaces", str(results / "workspaces")]
        words += ["--agent", agent] if agent else []
        words += ["--runner", runner] if runner else []
        events = [json.loads(line) for line in told(await inspect_subprocess([EVAL, *words])).splitlines()]
        made = [event["result"] for event in events if event["event"] == "ended"]
        result = made[-1]
        state.metadata["result"] = result
        state.metadata["workspace"] = str(results / "workspaces" / f"{result['case_id']}_latest")
        state.output.completion = f"{result['outcome']}: {result['why'] or 'every check passes'}"
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def outcome():
    async def score(state, target):
        result = state.metadata["result"]
        if result["cause"] in NOT_SCORED:
            raise RuntimeError(f"not scored ({result['cause']}): {result['why']}")
        is_success = result["outcome"] == "success"
        return Score(
            value=CORRECT if is_success else INCORRECT,
            answer=result["outcome"],
            explanation=result["why"],
            metadata=result,
        )

    return score


@task
def runner_cases(cases="eval/cases", tag=None, agent=None, runner=None):
    words = ["list", "--json", "--cases", cases] + (["--tag", tag] if tag else [])
    listed = json.loads(told(subprocess.run([EVAL, *words], capture_output=True, text=True)))["cases"]
    # A case without an agent of its own needs one that was named.
    wanted = [case for case in listed if agent or case["agent"] != "any"]
    samples = [
        Sample(id=case["id"], input=case["goal"], metadata={"case": case["id"], "expect": case["expect"]})
        for case in wanted
    ]
    return Task(
        dataset=MemoryDataset(samples, name="runner"),
        solver=runner_loop(cases, agent, runner),
        scorer=outcome(),
        fail_on_error=False,
    )
