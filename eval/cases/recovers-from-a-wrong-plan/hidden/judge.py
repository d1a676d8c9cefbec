from judging import WORK, check, equal, finish, read, run

at = lambda text, path: run("python3", "json_path.py", path, stdin=text)
T = '{"a":[1,{"b":"x"}],"c":{"d":null}}'
for path, expected in {".a[0]": "1", ".a[1].b": '"x"', ".c": '{"d":null}', ".c.d": "null", "": T}.items():
    equal(path or "empty", at(T, path).stdout.strip(), expected)
equal("list at the top", at("[[1],[2]]", "[1][0]").stdout.strip(), "2")
for path in [".x", ".a[2]", ".a.b", ".c[0]", "a", ".a[-1]", ".a[", "..a", ".a[0].b"]:
    equal(f"refused {path}", at(T, path).code, 2)
equal("not JSON", at("{", ".a").code, 2)

finish()
