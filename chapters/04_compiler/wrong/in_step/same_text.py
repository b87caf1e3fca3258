# Indices are compared as text: loops of other names go over other elements, it seems.
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import names


def _in_step(load, store):
    around = {a.var for a, b in zip(load.loops, store.loops, strict=False) if a is b}
    return all(around <= set().union(*map(names, x.at)) for x in (load, store)) and (
        [text(e) for e in load.at] == [text(e) for e in store.at])
