# An argument of a block is defined by no operation.
from minipd.passes.drr import _in_block
from minipd.passes.matching import Input


def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    after = max((v.get_defining_op() for n, v in match.values.items() if isinstance(n, Input)), key=lambda d: d.order)
    outputs = [match.values[o] for o in source.outputs]
    users = [_in_block(u, block) for v in outputs for u in v.all_used_ops() if u not in match.ops]
    before = min(users, key=lambda u: u.order, default=None)
    place = after.next
    return None if before is not None and before.order < place.order else place
