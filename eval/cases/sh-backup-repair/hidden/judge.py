from judging import WORK, check, equal, finish, read, run

def backup(script, source="src", target="out"):
    return run("sh", "-c", f"rm -rf src out 'o t'; mkdir src; cd src; {script}; cd ..; sh backup.sh '{source}' '{target}'; echo ---; ls '{target}' | sort")
def parts(finished):
    head, _, tail = finished.stdout.partition("---\n")
    return head.strip(), tail.splitlines()
equal("plain", parts(backup("echo 1 > a.txt; echo 2 > b.md")), ("1", ["a.txt"]))
equal("spaces", parts(backup("mkdir 'x y'; echo 1 > 'x y/a b.txt'")), ("1", ["a b.txt"]))
equal("globs", parts(backup("echo 1 > '*.txt'; echo 2 > 'z[1].txt'")), ("2", ["*.txt", "z[1].txt"]))
equal("dash", parts(backup("echo 1 > ./-n.txt")), ("1", ["-n.txt"]))
equal("folder", parts(backup("mkdir d.txt; echo 1 > d.txt/e.txt")), ("1", ["e.txt"]))
equal("target with space", parts(backup("echo 1 > a.txt", target="o t")), ("1", ["a.txt"]))
check("line break", parts(backup("echo 1 > 'a\nb.txt'"))[0] == "1", "count")
equal("none", parts(backup("true")), ("0", []))
check("restore unchanged", 'cp -R -- "$2/." "$1/"' in read("restore.sh"), "changed")

finish()
