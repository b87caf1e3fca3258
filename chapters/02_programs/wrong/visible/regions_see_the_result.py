# An operation's results become visible before its regions have been walked.
def _walk(block, visible):
    for op in block.ops:
        yield op
        visible.update(op.results())
        for inner in op.blocks():
            visible.update(inner.args())
            yield from _walk(inner, visible)
            visible.difference_update(inner.args(), *(o.results() for o in inner))
