"""Runs the test scripts of an imported task, as its framework does: the work at /app, the tests at /tests, a reward in /logs."""

import json
import os
import pathlib
import subprocess
import tempfile

from judging import WORK, check, finish

OPTIONS = json.loads(pathlib.Path("options.json").read_text())
PREFIX = json.loads(os.environ["EVAL_CANDIDATE"])
READABLE = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt", "root", "home", "var")


def reward(tests):
    """The reward that the script writes, or 1 and 0 for its exit code if it writes none."""
    with tempfile.TemporaryDirectory() as logs:
        command = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--tmpfs", "/"]
        for name in READABLE:
            if os.path.exists(f"/{name}"):
                command += ["--ro-bind", f"/{name}", f"/{name}"]
        command += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", str(WORK), "/app", "--bind", logs, "/logs"]
        command += ["--ro-bind", str(tests), "/tests", "--chdir", "/app", "--setenv", "TEST_DIR", "/tests"]
        os.makedirs(f"{logs}/verifier")
        inside = ["bash", f"/tests/{OPTIONS['script']}"]
        if not PREFIX:
            command, inside = [], ["bash", str(tests / OPTIONS["script"])]
        done = subprocess.run([*command, *inside], cwd=WORK, capture_output=True, text=True, timeout=3000)
        for name in ("reward.txt", "reward.json"):
            file = pathlib.Path(logs) / "verifier" / name
            if file.is_file():
                value = json.loads(file.read_text())
                return min(value.values()) if isinstance(value, dict) else float(value), done
        return float(done.returncode == 0), done


for step in OPTIONS["steps"]:
    value, done = reward(pathlib.Path(step["tests"]).resolve())
    check(step["name"], value >= step["min_reward"], f"reward {value}: {(done.stdout + done.stderr)[-300:]}")
finish()
