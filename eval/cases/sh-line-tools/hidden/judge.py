from judging import WORK, check, equal, finish, read, run

T = {'number': [([], 'a\nb\n', '1:a\n2:b'), ([], '\n\n', '1:\n2:')], 'unique': [([], 'b\na\nb\n', 'b\na'), ([], 'x\n', 'x')], 'last': [(['2'], 'a\nb\nc\n', 'b\nc'), (['5'], 'a\n', 'a')], 'trim': [([], '  a b \n\tc\t\n', 'a b\nc'), ([], '\n', '')], 'between': [(['BEGIN', 'END'], 'x\nBEGIN\ny\nz\nEND\nw\n', 'y\nz'), (['a', 'b'], 'c\n', '')], 'longest': [([], 'a\nccc\nddd\n', 'ccc'), ([], 'z\n', 'z')], 'percent': [([], 'a 1\nb 3\n', 'a 25\nb 75'), ([], 'x 2\ny 4\n', 'x 33\ny 67')], 'transpose': [([], 'a b c\n1 2 3\n', 'a 1\nb 2\nc 3'), ([], 'x\ny\n', 'x y')]}
for name, examples in T.items():
    for args, text, expected in examples:
        finished = run('sh', f"tools/{name}.sh", *args, stdin=text)
        check(f"{name} {args} {text[:20]!r}", finished.code == 0 and finished.stdout.rstrip("\n") == expected, finished)

finish()
