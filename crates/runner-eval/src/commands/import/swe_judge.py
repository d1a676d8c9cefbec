"""Judges a SWE-bench instance: applies its test patch and runs the named tests with pytest, one process for all."""

import json
import pathlib

from judging import check, finish, run

OPTIONS = json.loads(pathlib.Path("options.json").read_text())
applied = run("git", "apply", "--whitespace=nowarn", "-", stdin=OPTIONS["test_patch"]) if OPTIONS["test_patch"] else None
check("test patch applies", applied is None or applied.code == 0, applied)
names = [*OPTIONS["fail_to_pass"], *OPTIONS["pass_to_pass"]]
finished = run("python3", "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *names, timeout=1800)
passed = {line.removeprefix("PASSED ").split(" - ")[0] for line in finished.lines if line.startswith("PASSED ")}
for name in names:
    check(name, name in passed, finished)
finish()
