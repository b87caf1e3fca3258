# Parts that have nothing to do with each other are taken for one with several results.
from minipd.cinn.frontend.pattern import Kind, reduces


def kind_of(ops, readers):
    inside = set(ops)
    ends = [op for op in ops if not inside.intersection(readers[op])]
    if len(ends) > 1:
        return Kind.ANCHOR
    reductions = sum(map(reduces, ops))
    if not reductions:
        return Kind.TRIVIAL
    if not reduces(ends[0]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if reductions == 1 else Kind.REDUCE_TREE
