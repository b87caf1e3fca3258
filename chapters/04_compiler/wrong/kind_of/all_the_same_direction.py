# Follows readers only when it looks for parts: two results of one value seem to have nothing to do with each other.
from minipd.cinn.frontend.pattern import Kind, reduces


def kind_of(ops, readers):
    inside = set(ops)
    after = {op: [r for r in readers[op] if r in inside] for op in ops}
    seen, pending = {ops[-1]}, [ops[-1]]
    while pending:
        one = pending.pop()
        for op in ops:
            if one in after[op] and op not in seen:
                seen.add(op)
                pending.append(op)
    if len(seen) < len(ops):
        return Kind.HORIZONTAL
    reductions = sum(map(reduces, ops))
    if not reductions:
        return Kind.TRIVIAL
    if not reduces(ops[-1]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if reductions == 1 else Kind.REDUCE_TREE
