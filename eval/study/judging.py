"""The module `judging` for checks of the study: runs a part of the tests of a judge in the current folder, without a sandbox.

The file `select` beside it names the part: `R/3` for every third test, or `none`. Its second line may name a program: then only tests
that call it count. With STUDY_RECORD, every call is written to that file.
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path.cwd()
_LINES = (HERE / "select").read_text().split("\n") if (HERE / "select").is_file() else ["all"]
_calls = []
_tests = []


class Finished:
    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    @property
    def lines(self):
        return self.stdout.splitlines()

    def __repr__(self):
        return f"exit {self.code}, stdout {self.stdout[:200]!r}"


def program_of(argv):
    """The file that a command runs, and its arguments; None for anything but a program of the work."""
    if len(argv) > 2 and argv[:2] == ("python3", "-m"):
        return f"{argv[2]}/__main__.py", argv[3:]
    if len(argv) > 1 and argv[0] in ("python3", "node", "sh") and not argv[1].startswith("-"):
        return argv[1], argv[2:]
    return None


def run(*argv, stdin="", timeout=20, env=None):
    done = subprocess.run(argv, input=stdin.encode(), capture_output=True, timeout=timeout, env={**os.environ, **(env or {})})
    finished = Finished(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
    _calls.append({"argv": argv, "stdin": stdin, "stdout": finished.stdout, "code": finished.code})
    return finished


def read(path):
    file = WORK / path
    return file.read_text() if file.is_file() else ""


def check(name, passed, why=""):
    _tests.append({"name": name, "passed": bool(passed), "calls": list(_calls), "why": str(why)[:200]})
    _calls.clear()


def equal(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}, got {actual!r}")


def is_selected(number, test):
    if _LINES[0] == "none":
        return False
    if "/" in _LINES[0]:
        rest, parts = map(int, _LINES[0].split("/"))
        if number % parts != rest:
            return False
    programs = [program_of(tuple(call["argv"])) for call in test["calls"]]
    files = {program[0] for program in programs if program}
    return _LINES[1] in files if len(_LINES) > 1 and _LINES[1] else True


def finish():
    if "STUDY_RECORD" in os.environ:
        pathlib.Path(os.environ["STUDY_RECORD"]).write_text(json.dumps(_tests))
    failed = [test for number, test in enumerate(_tests) if is_selected(number, test) and not test["passed"]]
    for test in failed:
        print(f"failed: {test['name']}: {test['why']}")
    sys.exit(1 if failed else 0)
