from judging import WORK, check, equal, finish, read, run

def cache(size, *lines):
    return run("python3", "main.py", str(size), stdin="\n".join(lines) + "\n").lines
equal("hit", cache(2, "put a 1", "get a"), ["1"])
equal("get is a use", cache(2, "put a 1", "put b 2", "get a", "put c 3", "get a", "get b"), ["1", "1", "-"])
equal("put is a use", cache(2, "put a 1", "put b 2", "put a 9", "put c 3", "get a", "get b"), ["9", "-"])
equal("overwriting evicts nothing", cache(2, "put a 1", "put b 2", "put b 3", "get a", "get b"), ["1", "3"])
equal("size one", cache(1, "put a 1", "put b 2", "get a", "get b"), ["-", "2"])
equal("size zero", cache(0, "put a 1", "get a"), ["-"])
equal("a miss is no use", cache(2, "put a 1", "put b 2", "get x", "put c 3", "get a", "get b", "get c"), ["-", "-", "2", "3"])
equal("main unchanged", read("main.py").count("Cache(int(sys.argv[1]))"), 1)

finish()
