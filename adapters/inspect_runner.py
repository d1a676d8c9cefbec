"""The cases of `runner eval` as an Inspect task.

    inspect eval adapters/inspect_runner.py --model mockllm/model -T cases=eval/cases -T tag=scripted
    inspect eval adapters/inspect_runner.py --model mockllm/model -T agent=codex:gpt-6.1-sol --epochs 5

Each case is a sample. `runner-eval` runs the loop, not Inspect's model. `-T agent=` names the agent; the default is the one that
each case names itself. A trial that is not scored (provider, harness, a missing program) is an error of the sample, never a 0. The
transcript and the tokens of the sessions are in the log. `-T keep=true` keeps workspaces and results in the temporary folder.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelUsage
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr
from inspect_ai.solver import solver
from inspect_ai.util import subprocess as inspect_subprocess

RUNNER_EVAL = os.environ.get("RUNNER_EVAL", "runner-eval")
# Causes of trials that are not scored.
UNSCORED_CAUSES = {"provider", "harness", "missing_tool", "grader", "interrupted"}


def output_of(process):
    """The output of runner-eval. Exit code 1 means that a case did not end as its file expects, which is also a result."""
    if process.returncode not in (0, 1):
        raise RuntimeError(f"runner-eval exited with {process.returncode}: {process.stderr}")
    return process.stdout


def message(step):
    """A step of a trajectory as a message of the transcript."""
    text = step.get("message") or step.get("reasoning_content") or json.dumps(step.get("tool_calls", ""))
    if step["source"] == "agent":
        return ChatMessageAssistant(content=text)
    return ChatMessageUser(content=text)


@solver
def runner_loop(cases, agent, runner, keep):
    async def solve(state, generate):
        folder = Path(tempfile.mkdtemp(prefix="inspect-runner-"))
        places = ["--cases", cases, "--results", str(folder / "results"), "--workspaces", str(folder / "workspaces")]
        arguments = ["run", state.metadata["case"], "--json", "--run", "inspect", *places]
        arguments += ["--agent", agent] if agent else []
        arguments += ["--runner", runner] if runner else []
        output = output_of(await inspect_subprocess([RUNNER_EVAL, *arguments]))
        events = [json.loads(line) for line in output.splitlines()]
        attempts = [event["result"] for event in events if event["event"] == "trial"]
        result = attempts[-1]
        state.metadata["result"] = result
        atif = output_of(await inspect_subprocess([RUNNER_EVAL, "report", "atif", "inspect", *places]))
        trajectory = json.loads(atif.splitlines()[-1])
        state.messages += [message(step) for step in trajectory["steps"]]
        totals = trajectory["final_metrics"]
        state.output.usage = ModelUsage(
            input_tokens=totals.get("total_prompt_tokens", 0), output_tokens=totals.get("total_completion_tokens", 0)
        )
        if keep:
            state.metadata["workspace"] = str(folder / "workspaces" / f"{result['case_id']}_latest")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        state.output.completion = f"{result['outcome']}: {result['why'] or 'all checks passed'}"
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def outcome():
    async def score(state, target):
        result = state.metadata["result"]
        if result["cause"] in UNSCORED_CAUSES:
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
def runner_cases(cases="eval/cases", tag=None, agent=None, runner=None, keep=False):
    arguments = ["list", "--json", "--cases", cases] + (["--tag", tag] if tag else [])
    output = output_of(subprocess.run([RUNNER_EVAL, *arguments], capture_output=True, text=True))
    # A case that names no agent itself can only run with `agent`.
    runnable = [case for case in json.loads(output)["cases"] if agent or case["agent"] != "any"]
    samples = [
        Sample(id=case["id"], input=case["goal"], metadata={"case": case["id"], "expect": case["expect"]})
        for case in runnable
    ]
    return Task(
        dataset=MemoryDataset(samples, name="runner"),
        solver=runner_loop(cases, agent, runner, keep),
        scorer=outcome(),
        fail_on_error=False,
    )
