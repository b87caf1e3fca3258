# Compares an operation of an outer block with those of the match by number: each block counts from its own start.
def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    defined = [d for p, v in match.values.items() if isinstance(p, Input) and (d := v.get_defining_op()) is not None]
    after = max(defined, key=lambda d: d.order, default=None)
    outputs = [match.values[o] for o in source.outputs]
    users = [_in_block(u, block) for v in outputs for u in v.all_used_ops() if u not in match.ops]
    before = min(users, key=lambda u: u.order, default=None)
    place = min((op for v in outputs if (op := v.get_defining_op()) is not None), key=lambda d: d.order)
    if after is not None and place.order <= after.order:
        place = after.next
    return None if before is not None and before.order < place.order else place
