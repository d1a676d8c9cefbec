from judging import WORK, check, equal, finish, read, run

built = run("rustc", "--edition", "2021", "-o", "prog.out", "src/main.rs", timeout=100)
check("builds", built.code == 0, built)
prog = lambda *a, **k: run("./prog.out", *a, **k)
equal("counts", prog(stdin="pear Apple pear\nfig apple, pear!\n").lines, ["3 pear", "2 apple", "1 fig"])
equal("apostrophes", prog(stdin="Don't 'tis' don't").lines, ["2 don't", "1 tis"])
equal("top", prog("--top", "1", stdin="b a b").lines, ["2 b"])
equal("min", prog("--min", "2", stdin="b a b c c").lines, ["2 b", "2 c"])
equal("both", prog("--min", "2", "--top", "1", stdin="b a b c c").lines, ["2 b"])
equal("unicode", prog(stdin="\u00c4 \u00e4 z").lines, ["2 \u00e4", "1 z"])
equal("empty", (prog(stdin="").code, prog(stdin="").stdout), (0, ""))
for bad in (["--top"], ["--top", "x"], ["--what"], ["--min", "-1"]):
    equal(f"refused {bad}", prog(*bad).code, 2)
check("several modules", len(list((WORK / "src").glob("*.rs"))) >= 3, "one file")

finish()
