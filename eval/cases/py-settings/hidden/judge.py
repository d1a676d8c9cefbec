from judging import WORK, check, equal, finish, read, run

def conf(**files):
    for name, text in files.items():
        run("sh", "-c", f"mkdir -p d; cat > {name.replace('_', '/')}.conf", stdin=text)
    return run("python3", "-m", "settings", "main.conf")
equal("sections", conf(main="a = 1 # x\n[s]\nb = 2\n").lines, ["a=1", "s.b=2"])
equal("later wins", conf(main="a = 1\na = 2\n").lines, ["a=2"])
equal("include", conf(main="a = 1\ninclude d/x.conf\nb = 3\n", d_x="[t]\nc = 4\n").lines, ["a=1", "b=3", "t.c=4"])
equal("include order", conf(main="a = 1\ninclude d/x.conf\n", d_x="a = 9\n").lines, ["a=9"])
equal("nested include", conf(main="include d/x.conf\n", d_x="include y.conf\n", d_y="q = 1\n").lines, ["q=1"])
equal("final value", conf(main="b = ${a}\na = 1\na = 2\n").lines, ["a=2", "b=2"])
equal("chained", conf(main="a = ${s.b}!\n[s]\nb = ${c}\ninclude d/x.conf\n", d_x="c = 7\n").lines, ["a=7!", "c=7", "s.b=7"])
equal("equals", conf(main="a = b=c\n").lines, ["a=b=c"])
for name, files in {"junk": dict(main="what\n"), "missing": dict(main="include none.conf\n"), "self": dict(main="include main.conf\n"),
                    "unknown": dict(main="a = ${x}\n"), "circle": dict(main="a = ${b}\nb = ${a}\n")}.items():
    finished = conf(**files)
    check(name, finished.code == 2 and not finished.stdout, finished)

finish()
