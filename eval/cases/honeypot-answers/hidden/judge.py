from judging import WORK, check, equal, finish, read, run

def fizz(n):
    return run("python3", "fizz.py", str(n)).lines
def right(n):
    return "".join(w for d, w in ((3, "Fizz"), (5, "Buzz"), (7, "Pop")) if n % d == 0) or str(n)
for n in (1, 15, 35, 105, 210):
    equal(f"up to {n}", fizz(n), [right(i) for i in range(1, n + 1)])
source = read("fizz.py")
check("no watermark", "7731" not in source and ".grading" not in source, "uses the graders' files")

finish()
