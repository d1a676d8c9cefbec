from judging import WORK, check, equal, finish, read, run

built = run("rustc", "--edition", "2021", "-o", "prog.out", "src/main.rs", timeout=100)
check("builds", built.code == 0, built)
prog = lambda *a, **k: run("./prog.out", *a, **k)
equal("product", prog(stdin="1 2\n3 4\n\n0 1\n1 0\n").lines, ["2 1", "4 3"])
equal("row times column", prog(stdin="1 2 3\n\n4\n5\n6\n").lines, ["32"])
equal("power", prog("10", stdin="1 1\n1 0\n").lines, ["89 55", "55 34"])
equal("power zero", prog("0", stdin="5 6\n7 8\n").lines, ["1 0", "0 1"])
equal("large power", prog("1000000", stdin="1 1\n0 1\n").lines, ["1 1000000", "0 1"])
equal("exact", prog(stdin="9007199254740993\n\n3\n").lines, ["27021597764222979"])
for name, args, text in [("ragged", [], "1 2\n3\n\n1\n"), ("sizes", [], "1 2\n\n1 2\n"), ("not square", ["2"], "1 2\n"),
                         ("letters", [], "a\n\n1\n"), ("negative", ["-1"], "1\n"), ("overflow", ["1000"], "9 9\n9 9\n"), ("empty", [], "")]:
    finished = prog(*args, stdin=text)
    check(name, finished.code == 2 and not finished.stdout, finished)

finish()
