# A reader in a region is overlooked.
from minipd.passes.matching import Input


def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    defined = [d for n, v in match.values.items() if isinstance(n, Input)
               and (d := v.get_defining_op()) is not None and d.parent is block]
    after = max(defined, key=lambda d: d.order, default=None)
    outputs = [match.values[o] for o in source.outputs]
    users = [u for v in outputs for u in v.all_used_ops() if u not in match.ops and u.parent is block]
    before = min(users, key=lambda u: u.order, default=None)
    place = min((v.get_defining_op() for v in outputs), key=lambda d: d.order)
    if after is not None and place.order <= after.order:
        place = after.next
    return None if before is not None and before.order < place.order else place
