from judging import WORK, check, equal, finish, read, run

def evaluate(code):
    return run("python3", "-c", "from roman import from_roman, to_roman\n" + code)
finished = evaluate("for n in range(1, 4000): print(to_roman(n), from_roman(to_roman(n)))")
rows = [line.split() for line in finished.lines]
values = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}
def value(text):
    numbers = [values.get(c, 0) for c in text]
    return sum(-a if a < b else a for a, b in zip(numbers, numbers[1:] + [0]))
equal("count", len(rows), 3999)
check("distinct", len({row[0] for row in rows}) == 3999, "the same numeral twice")
check("values", all(len(row) == 2 and value(row[0]) == n and row[1] == str(n) for n, row in enumerate(rows, 1)), "wrong numeral")
equal("3888", evaluate("print(to_roman(3888))").stdout.strip(), "MMMDCCCLXXXVIII")
for call in ["to_roman(0)", "to_roman(-1)", "to_roman(4000)", "to_roman(1.5)"] + [f"from_roman({t!r})" for t in ("", "x", "IC", "VX", "IIII", "VIIII", "MMMM", "XM", "I V")]:
    finished = evaluate(f"try:\n    {call}\nexcept ValueError:\n    print('refused')")
    equal(call, finished.stdout.strip(), "refused")

finish()
