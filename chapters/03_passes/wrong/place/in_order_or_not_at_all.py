# Gives up where an input stands behind the first output, though there is a place behind both.
from minipd.passes.drr import _in_block
from minipd.passes.matching import Input


def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    defined = [d for n, v in match.values.items() if isinstance(n, Input)
               and (d := v.get_defining_op()) is not None and d.parent is block]
    after = max((d.order for d in defined), default=-1)
    outputs = [match.values[o] for o in source.outputs]
    before = min((_in_block(u, block).order for v in outputs for u in v.all_used_ops() if u not in match.ops),
                 default=None)
    place = min((v.get_defining_op() for v in outputs), key=lambda d: d.order)
    return None if place.order <= after or before is not None and before < place.order else place
