from judging import WORK, check, equal, finish, read, run

route = lambda *a: run("node", "src/index.js", "routes.json", *a)
def expect(name, finished, code, out):
    check(name, finished.code == code and finished.stdout.strip() == out, finished)
expect("param", route("GET", "/users/42"), 0, '{"handler":"user","params":{"id":"42"}}')
expect("first route wins", route("GET", "/users/me"), 0, '{"handler":"user","params":{"id":"me"}}')
expect("static", route("POST", "/users"), 0, '{"handler":"create","params":{}}')
expect("rest", route("GET", "/files/a/b%20c/d.txt"), 0, '{"handler":"file","params":{"*":"a/b c/d.txt"}}')
expect("rest needs a segment", route("GET", "/files"), 1, "404")
expect("query", route("GET", "/users/1?x=/y"), 0, '{"handler":"user","params":{"id":"1"}}')
expect("empty segments", route("GET", "//users//9/"), 0, '{"handler":"user","params":{"id":"9"}}')
expect("method", route("DELETE", "/users/1"), 1, "405")
expect("unknown", route("GET", "/nothing"), 1, "404")
expect("too long", route("GET", "/users/1/2"), 1, "404")
check("several modules", len(list((WORK / "src").glob("*.js"))) >= 2, "one file")

finish()
