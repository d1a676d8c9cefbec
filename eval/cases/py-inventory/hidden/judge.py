from judging import WORK, check, equal, finish, read, run

run("rm", "-f", "stock.json")
inv = lambda *a: run("python3", "-m", "inventory", *a)
equal("empty list", (inv("list").code, inv("list").stdout), (0, ""))
for name, count in [("bolt", 5), ("apple", 2), ("bolt", 4)]:
    equal(f"add {name}", inv("add", name, str(count)).code, 0)
equal("sorted and summed", inv("list").lines, ["apple 2", "bolt 9"])
equal("too many", inv("remove", "apple", "3").code, 2)
equal("nothing changed", inv("list").lines, ["apple 2", "bolt 9"])
for bad in (["add", "x", "0"], ["add", "x", "-1"], ["add", "x", "y"], ["remove", "none", "1"], [], ["fly"], ["add", "x"]):
    finished = inv(*bad)
    check(f"refused {bad}", finished.code == 2 and finished.stderr.strip(), finished)
equal("remove all", inv("remove", "apple", "2").code, 0)
equal("gone", inv("list").lines, ["bolt 9"])
check("several modules", len(list((WORK / "inventory").glob("*.py"))) >= 3, "one file")

finish()
