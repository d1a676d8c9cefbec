from judging import WORK, check, equal, finish, read, run

def plan(text):
    return run("sh", "-c", "cat > in.txt; sh plan.sh in.txt", stdin=text)
equal("chain", plan("c: b\nb: a\na:\n").lines, ["a", "b", "c"])
equal("alphabetical", plan("z:\ny:\nx:\n").lines, ["x", "y", "z"])
equal("diamond", plan("d: b c\nb: a\nc: a\na:\n").lines, ["a", "b", "c", "d"])
equal("ready later", plan("b:\na: z\nz:\n").lines, ["b", "z", "a"])
equal("comments", plan("# x\n\na:\n").lines, ["a"])
equal("empty", (plan("").code, plan("").stdout), (0, ""))
equal("unknown", (plan("a: q\n").code, plan("a: q\n").stdout), (2, ""))
equal("cycle", (plan("a: b\nb: a\nc:\n").code, plan("a: b\nb: a\nc:\n").stdout), (3, ""))
equal("usage", run("sh", "plan.sh").code, 1)
equal("no file", run("sh", "plan.sh", "none.txt").code, 1)
check("library", len(read("lib/graph.sh")) > 50, "lib/graph.sh is missing")

finish()
