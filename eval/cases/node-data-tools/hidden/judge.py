from judging import WORK, check, equal, finish, read, run

T = {'flatten': [([], '{"b":1,"a":{"c":[true,null]}}', 'a.c.0=true\na.c.1=null\nb=1'), ([], '{"x":"y"}', 'x="y"')], 'unflatten': [([], 'b=1\na.c=true', '{"a":{"c":true},"b":1}'), ([], 's="x=y"', '{"s":"x=y"}')], 'sum': [(['2'], 'a 1\nb 2.5', '3.5'), (['1'], '', '0'), (['1'], '  7\n8', '15')], 'groupcount': [(['1'], 'b x\na y\nb z', 'b 2\na 1'), (['2'], '1 k\n2 k', 'k 2')], 'median': [([], '3 1 2', '2'), ([], '10 9 1 2', '5.5'), ([], '-5', '-5')], 'diffkeys': [([], '{"a":1,"b":2}\n{"b":3,"c":4}', '-a\n~b\n+c'), ([], '{"a":1}\n{"a":1}', '')], 'base': [(['2', '16'], '1010\n11', 'a\n3'), (['16', '10'], 'ffffffffffffffffffff', '1208925819614629174706175'), (['36', '2'], 'z', '100011')], 'template': [(['n=Bo'], 'hi {n}!', 'hi Bo!'), (['a=1=2'], '{{a}} {a} {b}', '{a} 1=2 {b}')]}
for name, examples in T.items():
    for args, text, expected in examples:
        finished = run('node', f"tools/{name}.js", *args, stdin=text)
        check(f"{name} {args} {text[:20]!r}", finished.code == 0 and finished.stdout.rstrip("\n") == expected, finished)

finish()
