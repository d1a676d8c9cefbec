"""What a judge needs: run a program of the work under test, compare, and print one line per test.

A judge is a program among the hidden files of a case. It runs beside the work, never inside of it: `run` starts a program
of the work in a sandbox of its own, which cannot see the judge's files, its processes or its output.
"""

import json
import os
import pathlib
import subprocess
import sys

WORK = pathlib.Path(os.environ["EVAL_WORK"])
_PREFIX = json.loads(os.environ["EVAL_CANDIDATE"])
_OUTPUT_MAX = 1 << 20
_results = []


class Finished:
    """How a program of the work ended. `code` is None if it was stopped at its time limit."""

    def __init__(self, code, stdout, stderr):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    @property
    def lines(self):
        return self.stdout.splitlines()

    def __repr__(self):
        return f"exit {self.code}, stdout {self.stdout[:200]!r}, stderr {self.stderr[-200:]!r}"


def run(*argv, stdin="", timeout=20, env=None):
    """Runs a program of the work in its folder."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    variables["TMPDIR"] = "/tmp"
    variables.update(env or {})
    child = subprocess.Popen(
        [*_PREFIX, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=WORK,
        env=variables,
    )
    try:
        out, err = child.communicate(stdin.encode(), timeout=timeout)
        code = child.returncode
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        code = None
    except BrokenPipeError:
        out, err, code = b"", b"", child.wait()
    decode = lambda data: data[:_OUTPUT_MAX].decode("utf-8", "replace")
    return Finished(code, decode(out), decode(err))


def read(path):
    """The text of a file of the work, or an empty text. Does not follow links out of the work."""
    resolved = (WORK / path).resolve()
    if not resolved.is_relative_to(WORK.resolve()) or not resolved.is_file():
        return ""
    return resolved.read_bytes()[:_OUTPUT_MAX].decode("utf-8", "replace")


def check(name, passed, why=""):
    """Records a test."""
    _results.append(bool(passed))
    reason = "" if passed else ": " + " ".join(str(why).split())[:300]
    print(f"{'ok' if passed else 'not ok'} {name}{reason}", flush=True)


def equal(name, actual, expected):
    """Records a test that compares two values."""
    check(name, actual == expected, f"expected {expected!r}, got {actual!r}")


def finish():
    """Ends the judge. Without this line the tests do not count, because the judge may have stopped early."""
    print(f"1..{len(_results)}", flush=True)
    sys.exit(0 if all(_results) else 1)
