from judging import WORK, check, equal, finish, read, run

import json
def merged(a, b):
    run("sh", "-c", "cat > a.json", stdin=a)
    run("sh", "-c", "cat > b.json", stdin=b)
    finished = run("node", "merge.js", "a.json", "b.json")
    return finished.lines
for a, b, expected in [('{"a":[1,2]}', '{"a":[3]}', '{"a":[3]}'), ('{"a":1}', '{"a":null}', '{"a":null}'), ('{"a":{"x":1}}', '{"a":{"y":2}}', '{"a":{"x":1,"y":2}}'),
                       ('{"a":5}', '{"a":{"b":1}}', '{"a":{"b":1}}'), ('{"a":[1]}', '{"a":{"b":1}}', '{"a":{"b":1}}'), ('{"a":null}', '{"a":{"b":1}}', '{"a":{"b":1}}'),
                       ('{"a":{"b":{"c":1}}}', '{"a":{"b":{"d":[]}}}', '{"a":{"b":{"c":1,"d":[]}}}'), ('{}', '{}', '{}'), ('{"a":false}', '{"b":""}', '{"a":false,"b":""}')]:
    equal(f"{a} {b}", merged(a, b), [expected])
found = merged("{}", '{"__proto__":{"polluted":1}}')
check("no pollution", "polluted" not in found and len(found) == 1, found)
equal("constructor", merged("{}", '{"constructor":{"x":1}}'), ['{"constructor":{"x":1}}'])

finish()
