"""Judges a SWE-bench instance: applies its test patch and runs the named tests with pytest, one process for all.

pytest comes from the machine, never from the work: it is imported before the folder of the work can be. The tests themselves run the
code of the work in the process of pytest, as SWE-bench does; work that attacks pytest from inside of its own tests is not noticed.
"""

import json
import pathlib

from judging import check, finish, run

LAUNCH = "import sys; sys.path.pop(0); import pytest; sys.path.insert(0, ''); sys.exit(pytest.main(sys.argv[1:]))"
OPTIONS = json.loads(pathlib.Path("options.json").read_text())
applied = run("git", "apply", "--whitespace=nowarn", "-", stdin=OPTIONS["test_patch"]) if OPTIONS["test_patch"] else None
check("test patch applies", applied is None or applied.code == 0, applied)
names = [*OPTIONS["fail_to_pass"], *OPTIONS["pass_to_pass"]]
finished = run("python3", "-c", LAUNCH, "-q", "-rA", "-p", "no:cacheprovider", *names, timeout=1800)
passed = {line.removeprefix("PASSED ").split(" - ")[0] for line in finished.lines if line.startswith("PASSED ")}
for name in names:
    check(name, name in passed, finished)
finish()
