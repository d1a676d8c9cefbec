"""Runs the test scripts of an imported task, as its framework does: the work at /app, the tests at /tests, a reward in /logs.

A step is judged in the state that the work had when the step ended."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from judging import WORK, check, finish, run

OPTIONS = json.loads(pathlib.Path("options.json").read_text())
PREFIX = json.loads(os.environ["EVAL_CANDIDATE"])
READABLE = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt", "root", "home", "var")


def passes(node, wanted):
    """Whether the task with this id has passed."""
    return node["id"] == wanted and node["passes"] or any(passes(child, wanted) for child in node["children"])


def commit_of(wanted):
    """The first commit in which the task has passed; None if it never did."""
    for commit in run("git", "rev-list", "--reverse", "HEAD").lines:
        tree = run("git", "show", f"{commit}:.runner/state/tree.json")
        if tree.code == 0 and passes(json.loads(tree.stdout)["root"], wanted):
            return commit
    return None


def state_of(step, folder):
    """The folder with the work in the state to judge; None if the step never ended."""
    if "node" not in step:
        return WORK
    commit = commit_of(step["node"])
    if commit is None:
        return None
    archive = run("sh", "-c", f"git archive {commit} | base64 -w0", timeout=120)
    subprocess.run(["sh", "-c", f"base64 -d | tar -x -C '{folder}'"], input=archive.stdout.encode(), check=True)
    return pathlib.Path(folder)


def reward(step, work, scratch):
    """The reward that the script writes, or 1 and 0 for its exit code if it writes none."""
    tests = pathlib.Path(scratch, "tests")
    for name in step["tests"]:
        shutil.copytree(name, tests, dirs_exist_ok=True)
    logs = pathlib.Path(scratch, "logs")
    (logs / "verifier").mkdir(parents=True)
    command = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--tmpfs", "/"]
    for name in READABLE:
        if os.path.exists(f"/{name}"):
            command += ["--ro-bind", f"/{name}", f"/{name}"]
    command += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", str(work), "/app", "--bind", str(logs), "/logs"]
    command += ["--ro-bind", str(tests), "/tests", "--chdir", "/app", "--setenv", "TEST_DIR", "/tests"]
    inside = ["bash", f"/tests/{OPTIONS['script']}"]
    if not PREFIX:
        command, inside = [], ["bash", str(tests / OPTIONS["script"])]
    variables = {**os.environ, **step.get("env", {})}
    done = subprocess.run([*command, *inside], cwd=work, env=variables, capture_output=True, text=True, timeout=3000)
    for name in ("reward.txt", "reward.json"):
        file = logs / "verifier" / name
        if file.is_file():
            value = json.loads(file.read_text())
            return min(value.values()) if isinstance(value, dict) else float(value), done
    return float(done.returncode == 0), done


for step in OPTIONS["steps"]:
    with tempfile.TemporaryDirectory() as scratch:
        os.mkdir(f"{scratch}/work")
        work = state_of(step, f"{scratch}/work")
        if work is None:
            check(step["name"], False, "the step never ended")
            continue
        value, done = reward(step, work, scratch)
        check(step["name"], value >= step["min_reward"], f"reward {value}: {(done.stdout + done.stderr)[-300:]}")
finish()
