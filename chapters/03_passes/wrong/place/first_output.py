# Always before the first matched output: an input may not be there yet.

def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    outputs = [match.values[o] for o in source.outputs]
    return min((v.get_defining_op() for v in outputs), key=lambda d: d.order)
