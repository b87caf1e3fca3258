# Counts reductions and looks at nothing else: what follows the last one is forgotten.
from minipd.cinn.frontend.pattern import Kind, reduces


def kind_of(ops, readers):
    number = sum(map(reduces, ops))
    return Kind.TRIVIAL if number == 0 else Kind.REDUCE if number == 1 else Kind.REDUCE_TREE
