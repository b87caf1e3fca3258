# Removes inputs that nobody reads: they are the program's signature, and whoever runs it still feeds them.
def _remove(program):
    open_blocks = [reversed(program.global_block().ops)]
    while open_blocks:
        op = next(open_blocks[-1], None)
        if op is None:
            open_blocks.pop()
        elif _dead(op) or op.name() == "pd_op.data" and op.result(0).use_empty():
            op.erase()
        else:
            open_blocks += [reversed(block.ops) for block in op.blocks()]
