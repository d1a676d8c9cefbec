from judging import WORK, check, equal, finish, read, run

count = lambda text: run("python3", "count.py", stdin=text)
equal("many", count("pear\napple\n\npear\nfig\napple\npear\n\nkiwi\n").lines, ["3 pear", "2 apple", "1 fig", "1 kiwi"])
equal("one", count("x\n").lines, ["1 x"])
equal("spaces count", count("a\n a\n").lines, ["1  a", "1 a"])
equal("no line end", count("b\nb").lines, ["2 b"])
equal("empty", (count("").code, count("").stdout), (0, ""))

finish()
