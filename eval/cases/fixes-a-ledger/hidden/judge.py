from judging import WORK, check, equal, finish, read, run

def evaluate(code):
    return run("python3", "-c", "from ledger import Ledger\nledger = Ledger()\n" + code).stdout.strip()
equal("empty", evaluate("print(ledger.balance(), ledger.statement())"), "0 []")
equal("first entry", evaluate("ledger.add(150)\nprint(ledger.balance())"), "150")
equal("balance", evaluate("ledger.add(150)\nledger.add(-50)\nprint(ledger.balance())"), "100")
equal("large", evaluate("ledger.add(2**53 + 1, 'much')\nledger.add(-5, 'little')\nprint(*ledger.statement(), sep='|')"), "90071992547409.93 much 90071992547409.93|-0.05 little 90071992547409.88")
equal("negative", evaluate("ledger.add(-12345, 'x')\nprint(*ledger.statement())"), "-123.45 x -123.45")
check("still a class", "class Ledger" in read("ledger.py"), "changed")

finish()
