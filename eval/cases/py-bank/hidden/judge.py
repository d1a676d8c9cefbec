from judging import WORK, check, equal, finish, read, run

def bank(*lines):
    return run("python3", "-m", "bank", stdin="\n".join(lines) + "\n").lines
equal("balance", bank("open a", "deposit a 5", "balance a", "total"), ["a 5", "total 5"])
equal("withdraw", bank("open a", "deposit a 5", "withdraw a 2", "balance a"), ["a 3"])
equal("funds", bank("open a", "withdraw a 1", "balance a"), ["error funds", "a 0"])
equal("transfer", bank("open a", "open b", "deposit a 9", "transfer a b 4", "balance a", "balance b"), ["a 5", "b 4"])
equal("transfer to itself", bank("open a", "deposit a 9", "transfer a a 4"), ["error amount"])
equal("transfer is atomic", bank("open a", "deposit a 9", "transfer a x 4", "balance a"), ["error unknown", "a 9"])
equal("interest", bank("open a", "open b", "deposit a 150", "deposit b 9", "interest 10", "balance a", "balance b", "statement b"), ["a 165", "b 9", "deposit +9"])
equal("frozen", bank("open a", "deposit a 100", "freeze a", "deposit a 1", "interest 10", "balance a", "thaw a", "deposit a 1", "balance a"), ["error frozen", "a 100", "a 101"])
equal("frozen target", bank("open a", "open b", "deposit a 5", "freeze b", "transfer a b 1", "balance a"), ["error frozen", "a 5"])
equal("statement", bank("open a", "open b", "deposit a 10", "withdraw a 2", "transfer a b 3", "interest 20", "statement a", "statement b"), ["deposit +10", "withdraw -2", "to b -3", "interest +1", "from a +3"])
equal("errors", bank("open a", "open a", "deposit x 1", "deposit a 0", "withdraw a -1", "fly", "deposit a", "deposit a x", ""), ["error exists", "error unknown", "error amount", "error amount", "error usage", "error usage", "error usage"])
check("modules", len(list((WORK / "bank").glob("*.py"))) >= 8, "fewer than eight modules")

finish()
