# Cleans the branches after the blocks around them: what only a dead operation in a branch read is left over.
def _remove(program):
    blocks = [program.global_block()]
    while blocks:
        block = blocks.pop(0)
        for op in reversed(block.ops):
            if _dead(op):
                op.erase()
            else:
                blocks += list(op.blocks())
