# Readers outside of the pattern count: what somebody else reads, too, is no end; and what only others read is none.
from minipd.cinn.frontend.pattern import Kind, _connected, _several, reduces


def kind_of(ops, readers):
    inside = set(ops)
    after = {op: [r for r in readers[op] if r in inside] for op in ops}
    if not _connected(ops, after):
        return Kind.HORIZONTAL
    ends = [op for op in ops if not after[op] or len(after[op]) < len(list(readers[op]))]
    if len(ends) > 1 or sum(map(_several, ends)):
        return Kind.ANCHOR
    reductions = sum(map(reduces, ops))
    if not reductions:
        return Kind.TRIVIAL
    if not reduces(ends[0]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if reductions == 1 else Kind.REDUCE_TREE
