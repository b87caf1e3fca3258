# Does not look into the branches of an `if`.
def remove_dead_ops(program):
    before = program.num_ops()
    for op in reversed(program.global_block().ops):
        if _dead(op):
            op.erase()
    return before - program.num_ops()
