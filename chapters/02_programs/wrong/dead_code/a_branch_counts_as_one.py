# Counts an `if` that is removed as one operation, whatever stood in it.
def remove_dead_ops(program):
    count = 0
    open_blocks = [reversed(program.global_block().ops)]
    while open_blocks:
        op = next(open_blocks[-1], None)
        if op is None:
            open_blocks.pop()
        elif _dead(op):
            op.erase()
            count += 1
        else:
            open_blocks += [reversed(block.ops) for block in op.blocks()]
    return count
