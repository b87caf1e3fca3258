# Where nobody reads an output, the place is that of the node that was matched last; it may stand first.
def _place(source, match):
    block = next(iter(match.nodes.values())).parent
    block.number()
    defined = [d for p, v in match.values.items() if isinstance(p, Input)
               and (d := v.get_defining_op()) is not None and d.parent is block]
    after = max(defined, key=lambda d: d.order, default=None)
    outputs = [match.values[o] for o in source.outputs]
    before = min((_in_block(u, block) for v in outputs for u in v.all_used_ops() if u not in match.ops),
                 key=lambda u: u.order, default=None)
    if before is None:
        return list(match.nodes.values())[-1]
    place = min((op for v in outputs if (op := v.get_defining_op()) is not None), key=lambda d: d.order)
    if after is not None and place.order <= after.order:
        if after.next is None:
            return None
        place = after.next
    return None if before.order < place.order else place
