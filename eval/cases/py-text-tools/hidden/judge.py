from judging import WORK, check, equal, finish, read, run

T = {'reverse_words': [([], 'one two three', 'three two one'), ([], '  a   b ', 'b a'), ([], '', '')], 'caesar': [(['3'], 'Abc xyz!', 'Def abc!'), (['-1'], 'a', 'z'), (['27'], 'Zz', 'Aa')], 'rle': [([], 'aaab', '3a1b'), ([], '', ''), ([], 'abc', '1a1b1c'), ([], 'xxxxxxxxxxxx', '12x')], 'unrle': [([], '3a1b', 'aaab'), ([], '12x', 'xxxxxxxxxxxx')], 'wrap': [(['5'], 'a bb ccc dd', 'a bb\nccc\ndd'), (['3'], 'toolong a b', 'toolong\na b')], 'columns': [([], 'a,bb\nccc,d', 'a    bb\nccc  d'), ([], 'x', 'x'), ([], 'a,b,c\naa', 'a   b  c\naa')], 'histogram': [([], 'Abba c', 'a 2\nb 2\nc 1'), ([], '12', ''), ([], 'zZy', 'z 2\ny 1')], 'sort_versions': [([], '1.10\n1.9\n1.2.3', '1.2.3\n1.9\n1.10'), ([], '2\n10\n1', '1\n2\n10')], 'dedent': [([], '  a\n    b\n', 'a\n  b'), ([], 'a\n b', 'a\n b'), ([], '   x\n\n   y', 'x\n\ny')]}
for name, examples in T.items():
    for args, text, expected in examples:
        finished = run('python3', f"tools/{name}.py", *args, stdin=text)
        check(f"{name} {args} {text[:20]!r}", finished.code == 0 and finished.stdout.rstrip("\n") == expected, finished)

finish()
