from judging import WORK, check, equal, finish, read, run

def vm(*lines):
    return run("python3", "-m", "vm", stdin="\n".join(lines) + "\n")
def prints(name, expected, *lines):
    finished = vm(*lines)
    check(name, finished.code == 0 and finished.lines == expected, finished)
def faults(name, *lines, before=()):
    finished = vm(*lines)
    check(name, finished.code == 1 and "fault:" in finished.stderr and finished.lines == list(before), finished)
prints("order", ["-1", "2", "1"], "push 2", "push 3", "sub", "print", "push 8", "push 4", "div", "print", "push 9", "push 4", "mod", "print")
prints("towards zero", ["-2", "-1"], "push -7", "push 3", "div", "print", "push -7", "push 3", "mod", "print")
prints("compare", ["1", "0", "1"], "push 1", "push 2", "lt", "print", "push 1", "push 2", "gt", "print", "push 3", "push 3", "eq", "print")
prints("stack", ["1", "2", "2"], "push 2", "dup", "push 1", "print", "print", "print")
prints("swap and drop", ["1"], "push 1", "push 2", "swap", "print")
prints("memory", ["0", "7"], "load x", "print", "push 7", "store x", "load x", "print")
prints("loop", ["3", "2", "1"], "push 3", "again: dup", "jz end ; done", "dup", "print", "push 1", "sub", "jmp again", "end:")
prints("call", ["25"], "push 5", "call square", "print", "halt", "square:", "dup", "mul", "ret")
prints("nested calls", ["8"], "push 2", "call cube", "print", "halt", "cube: dup", "store n", "call sq", "load n", "mul", "ret", "sq: dup", "mul", "ret")
prints("big", [str(2**100)], "push 1", "push 100", "store i", "l: load i", "jz e", "push 2", "mul", "load i", "push 1", "sub", "store i", "jmp l", "e: print")
faults("empty", "push 1", "print", "add", before=["1"])
faults("division", "push 1", "push 0", "div")
faults("label", "jmp nowhere")
faults("instruction", "fly")
faults("ret", "ret")
faults("steps", "l: jmp l")

finish()
