from judging import WORK, check, equal, finish, read, run

calc = lambda text: run("python3", "-m", "calc", text)
for text, expected in {"1+2*3": "7", "(1+2)*3": "9", "1/3+1/6": "1/2", "0.1+0.2": "3/10", "-2^2": "-4", "2^3^2": "512",
                       "2^-2": "1/4", "-(3-5)": "2", "2*-3": "-6", "10/4/5": "1/2", "8-3-2": "3", " 4 + 4 ": "8", "--5": "5"}.items():
    finished = calc(text)
    check(text, finished.code == 0 and finished.stdout.strip() == expected, finished)
for text in ["1+", "(1", "1)", "", "a", "1 2", "1/0", "2^(1/2)", "*3", "1..2"]:
    finished = calc(text)
    check(f"refused {text!r}", finished.code == 2 and not finished.stdout, finished)

finish()
