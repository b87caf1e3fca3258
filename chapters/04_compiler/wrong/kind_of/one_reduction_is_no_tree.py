# An element-wise end behind a single reduction is overlooked: x / sum(x) seems to be a Reduce.
from minipd.cinn.frontend.pattern import Kind, _connected, reduces


def kind_of(ops, readers):
    inside = set(ops)
    after = {op: [r for r in readers[op] if r in inside] for op in ops}
    if not _connected(ops, after):
        return Kind.HORIZONTAL
    ends = [op for op in ops if not after[op]]
    if len(ends) > 1:
        return Kind.ANCHOR
    reductions = sum(map(reduces, ops))
    if reductions < 2:
        return Kind.REDUCE if reductions else Kind.TRIVIAL
    return Kind.REDUCE_TREE if reduces(ends[0]) else Kind.REDUCE_TREE_TRIVIAL
