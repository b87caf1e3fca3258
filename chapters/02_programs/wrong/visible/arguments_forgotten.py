# Forgets that a block may have arguments.
def _walk(block, visible):
    for op in block.ops:
        yield op
        for inner in op.blocks():
            yield from _walk(inner, visible)
            visible.difference_update(*(o.results() for o in inner), ())
        visible.update(op.results())
