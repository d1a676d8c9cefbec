from judging import WORK, check, equal, finish, read, run

book = lambda *a: run("python3", "booking.py", *a)
for args, expected in {("2026-03-01", "2026-03-02"): "1 80", ("2026-07-30", "2026-08-02"): "3 360", ("2026-06-30", "2026-07-02"): "2 200",
                       ("2028-02-28", "2028-03-01"): "2 160", ("2026-12-31", "2027-01-01"): "1 95", ("2026-11-30", "2026-12-02"): "2 175"}.items():
    equal(" ".join(args), book(*args).stdout.strip(), expected)
equal("same day", book("2026-03-01", "2026-03-01").code, 2)
equal("backwards", book("2026-03-02", "2026-03-01").code, 2)
check("season table unchanged", "SEASON = {7: 120, 8: 120, 12: 95}" in read("booking.py"), "changed")

finish()
