# A region sees only what it defines itself (as in a language without closures); here it sees what is around it.
def _walk(block, visible):
    for op in block.ops:
        yield op
        for inner in op.blocks():
            outside = set(visible)
            visible.clear()
            visible.update(inner.args())
            yield from _walk(inner, visible)
            visible.clear()
            visible.update(outside)
        visible.update(op.results())
