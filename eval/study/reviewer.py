"""A simulated reviewer of known accuracy, for the study: it refuses 80 % of bad work and 10 % of good work."""

import json
import os
import pathlib
import random

WORK = pathlib.Path.cwd()
trial = next((part for part in WORK.name.split(".") if part[:1] == "t" and part[1:].isdigit()), WORK.name)
dice = random.Random(f"review {WORK.parent.name} {trial} {os.environ.get('RUNNER_NODE_ID')} {os.environ.get('RUNNER_ITER')}")
products = set()
for file in WORK.rglob("*"):
    if file.is_file() and ".git" not in file.parts and ".runner" not in file.parts:
        first = file.read_bytes()[:40].decode("utf-8", "replace").split("\n")[0]
        if " study: " in first:
            products.add(first.split(" study: ")[1].strip())
is_bad = products != {"good"}
refuses = dice.random() < (0.8 if is_bad else 0.1)
verdict = {"verdict": "refuse" if refuses else "accept", "reasons": ["this does not do what the task asks"] if refuses else []}
pathlib.Path(os.environ["RUNNER_OUTPUT"]).write_text(json.dumps(verdict))
