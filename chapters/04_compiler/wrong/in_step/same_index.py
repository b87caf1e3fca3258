# The same index, and that is all: for y[j] = x[j] + b[i], x[j] is read again in every i.
from minipd.cinn.overwriting import _shape


def _in_step(load, store):
    common = [a for a, b in zip(load.loops, store.loops, strict=False) if a is b]
    around = {loop.var for loop in common}
    return _shape(load, around) == _shape(store, around)
