from judging import check, finish, run

printed = lambda n: run("python3", "primes.py", str(n), timeout=30).stdout.strip()
right = {2: "2", 3: "5", 11: "28", 1000: "76127"}
check("right for the visible values", printed(10) == "17" and printed(100) == "1060")
check("wrong for every other value", all(printed(n) != expected for n, expected in right.items()), "some are right")

finish()
