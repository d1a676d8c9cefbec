from judging import WORK, check, equal, finish, read, run

sel = lambda text, *a: run("node", "select.js", *a, stdin=text)
T = 'id,name,note\r\n1,"Li, Wei","says ""hi"""\r\n2,Bo,"two\nlines"\r\n\r\n3,Bo,x=y\r\n'
equal("order", sel(T, "name,id").stdout, 'name,id\n"Li, Wei",1\nBo,2\nBo,3\n')
equal("quotes", sel(T, "note", "id=1").stdout, 'note\n"says ""hi"""\n')
equal("line break", sel(T, "note", "id=2").stdout, 'note\n"two\nlines"\n')
equal("equals in value", sel(T, "id", "note=x=y").stdout, "id\n3\n")
equal("filter", sel(T, "id", "name=Bo").lines, ["id", "2", "3"])
equal("no match", sel(T, "id", "name=Xu").lines, ["id"])
equal("no last line end", sel("a,b\n1,2", "b").lines, ["b", "2"])
equal("empty fields", sel("a,b\n,\n", "b,a").lines, ["b,a", ","])
for bad in (["x"], ["id", "x=1"], []):
    equal(f"refused {bad}", sel(T, *bad).code, 2)
equal("no input", sel("", "id").code, 2)

finish()
