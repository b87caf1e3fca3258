# Always before the last matched operation: a reader of the first output may stand before it.

def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    return max(match.nodes.values(), key=lambda op: op.order)
