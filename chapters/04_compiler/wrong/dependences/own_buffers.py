# What is declared in the body counts as well: a row buffer of its own seems to be shared.
from minipd.cinn.ir.ast import Var
from minipd.cinn.schedule.tree import accumulated, loads_of, stores_of


def dependences(loop):
    found = accumulated(loop.body)
    for buffer in {s.buffer for s in stores_of(loop.body)}:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = any(all(k < len(i) and i[k] == Var(loop.var) for i in indices) for k in range(len(indices[0])))
        if not apart:
            found.add(buffer)
    return found
