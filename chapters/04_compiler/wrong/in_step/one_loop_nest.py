# Both must be in the very same loops: what softmax does, a row twice, is refused.
from minipd.cinn.ir.walk import names
from minipd.cinn.overwriting import _shape


def _in_step(load, store):
    around = {loop.var for loop in load.loops}
    return load.loops == store.loops and all(around <= set().union(*map(names, x.at)) for x in (load, store)) and (
        _shape(load, around) == _shape(store, around))
