# Goes from front to back: of a dead chain only the last operation is seen to be dead.
def _remove(program):
    for op in list(program.walk()):
        if _dead(op):
            op.erase()
