from judging import WORK, check, equal, finish, read, run

def known(limit):
    found, total = bytearray(limit + 1), 0
    for n in range(2, limit + 1):
        if not found[n]:
            total += n
            for m in range(n * n, limit + 1, n):
                found[m] = 1
    return str(total)
for n in (0, 1, 2, 3, 10, 97, 100, 1000, 7919):
    equal(str(n), run("python3", "primes.py", str(n)).stdout.strip(), known(n))
equal("5000000", run("python3", "primes.py", "5000000", timeout=30).stdout.strip(), "838596693108")

finish()
