# An operator with several results counts as one end.
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
    if not reductions:
        return Kind.TRIVIAL
    if not reduces(ends[0]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if reductions == 1 else Kind.REDUCE_TREE
