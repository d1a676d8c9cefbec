"""Edits runner's tree.json as a misbehaving agent does: runner_tree.py (add NODE CHILD... | pass NODE | remove-others NODE)"""

import json
import os
import sys


def find(node, name):
    if node["id"] == name:
        return node
    return next((found for child in node["children"] if (found := find(child, name))), None)


def new_node(name, order):
    return {"id": name, "order": order, "title": name, "goal": name, "acceptance": [], "passes": False, "attempts": 0,
            "max_attempts": 3, "children": []}


def main():
    action, node_id, *names = sys.argv[1:]
    path = os.environ["RUNNER_TREE"]
    with open(path) as file:
        tree = json.load(file)
    node = find(tree["root"], node_id)
    if action == "add":
        node["children"] += [new_node(name, order) for order, name in enumerate(names, 1)]
    elif action == "pass":
        node["passes"] = True
    else:
        tree["root"]["children"] = [child for child in tree["root"]["children"] if child["id"] == node_id]
    with open(path, "w") as file:
        json.dump(tree, file)


main()
