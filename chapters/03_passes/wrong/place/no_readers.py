# Behind the inputs, and that is all: a reader of an output may stand before them.
from minipd.passes.matching import Input


def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    defined = [d for n, v in match.values.items() if isinstance(n, Input)
               and (d := v.get_defining_op()) is not None and d.parent is block]
    after = max(defined, key=lambda d: d.order, default=None)
    place = min((match.values[o].get_defining_op() for o in source.outputs), key=lambda d: d.order)
    return after.next if after is not None and place.order <= after.order else place
