from judging import WORK, check, equal, finish, read, run

built = run("rustc", "--edition", "2021", "-o", "prog.out", "src/main.rs", timeout=100)
check("builds", built.code == 0, built)
total = lambda text: run("./prog.out", stdin=text)
for text, expected in {"1h30m 45m": "2h15m", "2000h": "2000h00m", "70000m": "1166h40m", "1000000000000h 59m": "1000000000000h59m", "": "0h00m", "0h": "0h00m"}.items():
    equal(repr(text), total(text).stdout.strip(), expected)
for text in ["5", "1h5", "x", "1d", "1h 7"]:
    equal(f"refused {text!r}", total(text).code, 2)

finish()
