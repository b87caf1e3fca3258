# What a region has defined stays visible after it: the other region and the blocks around may use it.
def _walk(block, visible):
    for op in block.ops:
        yield op
        for inner in op.blocks():
            visible.update(inner.args())
            yield from _walk(inner, visible)
        visible.update(op.results())
