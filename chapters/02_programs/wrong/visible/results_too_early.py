# The results of an operation are visible to itself and to its regions.
def _walk(block, visible):
    mine = set()
    for op in block.ops:
        visible.update(op.results())
        mine.update(op.results())
        yield op
        for inner in op.blocks():
            visible.update(inner.args())
            yield from _walk(inner, visible)
            visible.difference_update(inner.args())
    visible.difference_update(mine if block.parent_op is not None else ())
