from judging import WORK, check, equal, finish, read, run

pages = lambda *a: run("node", "pages.js", *a).stdout.strip()
equal("first", pages("1", "3"), "1/8 item-1 item-2 item-3")
equal("second", pages("2", "3"), "2/8 item-4 item-5 item-6")
equal("last is short", pages("8", "3"), "8/8 item-22 item-23")
equal("too large", pages("99", "10"), "3/3 item-21 item-22 item-23")
equal("too small", pages("0", "10").split()[:2], ["1/3", "item-1"])
equal("negative", pages("-5", "10").split()[0], "1/3")
equal("exact", pages("1", "23").split()[0], "1/1")
equal("larger than all", len(pages("1", "50").split()), 24)

finish()
