# Does not look into the branches of an `if`.
def _remove(program):
    for op in reversed(program.global_block().ops):
        if _dead(op):
            op.erase()
