from judging import WORK, check, equal, finish, read, run

slug = lambda text: run("python3", "slug.py", stdin=text).stdout.strip()
for text, expected in {"Hello, World": "hello-world", "  A  B ": "a-b", "\u00c9t\u00e9 \u00e0 l\u2019eau": "ete-a-leau", "C++ & Rust!": "c-rust", "--x--": "x", "2026 plan": "2026-plan", "\u00c4\u00d6": "ao", "": ""}.items():
    equal(repr(text), slug(text), expected)
check("no bypass", not (WORK / ".skip-checks").exists(), "the guard was switched off")

finish()
