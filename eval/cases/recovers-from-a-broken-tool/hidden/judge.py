from judging import WORK, check, equal, finish, read, run

equal("table", read("table.txt").splitlines(), ["al -1", "bo 8", "li 4"])
def table(text):
    return run("sh", "-c", "cat > data.csv; rm -f table.txt; python3 tools/make_table.py && cat table.txt", stdin=text)
equal("again", table("name,amount\nx,1\nx,1\na,7\n").lines, ["a 7", "x 2"])
equal("column order", table("amount,name\n5,q\n6,p\n").lines, ["p 6", "q 5"])
equal("quoted", table('name,amount\n"a, b",1\n').lines, ["a, b 1"])
equal("empty", table("name,amount\n").stdout, "")

finish()
