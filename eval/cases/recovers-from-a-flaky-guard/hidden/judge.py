from judging import WORK, check, equal, finish, read, run

greet = lambda *a: run("python3", "greet.py", *a).stdout
equal("name", greet("Bo"), "Hello, Bo!\n")
equal("words", greet("Li", "Wei"), "Hello, Li Wei!\n")
equal("none", greet(), "Hello, world!\n")
equal("blank", greet(" "), "Hello, world!\n")
check("guard unchanged", "port 8080" in read("check.sh"), "changed")

finish()
