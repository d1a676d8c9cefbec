from judging import WORK, check, equal, finish, read, run

bill = lambda *a: run("python3", "bill.py", *a).stdout.strip()
for args, expected in {("1.5x2",): "EUR 3.00", ("0.1x3",): "EUR 0.30", ("1.005x1", "2x1"): "EUR 3.00", ("10x10", "0.5x1"): "EUR 100.50", (): "EUR 0.00"}.items():
    equal(" ".join(args) or "none", bill(*args), expected)
check("no markers", "<<<<" not in read("bill.py") and ">>>>" not in read("bill.py"), "markers left")

finish()
