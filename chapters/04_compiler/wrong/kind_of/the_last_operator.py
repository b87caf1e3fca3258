# Looks at the last operator only: two ends seem to be one.
from minipd.cinn.frontend.pattern import Kind, reduces


def kind_of(ops, readers):
    number = sum(map(reduces, ops))
    if not number:
        return Kind.TRIVIAL
    if not reduces(ops[-1]):
        return Kind.REDUCE_TREE_TRIVIAL
    return Kind.REDUCE if number == 1 else Kind.REDUCE_TREE
