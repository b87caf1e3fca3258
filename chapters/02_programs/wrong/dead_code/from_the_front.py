# Goes from front to back: of a dead chain only the last operation is seen to be dead.
def remove_dead_ops(program):
    before = program.num_ops()
    for op in list(program.walk()):
        if _dead(op):
            op.erase()
    return before - program.num_ops()
