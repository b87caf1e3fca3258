# The variable may be on another axis each time: y[i, j] = y[j, i] seems harmless.
from minipd.cinn.ir.ast import Var
from minipd.cinn.schedule.tree import accumulated, declared, loads_of, stores_of


def dependences(loop):
    own = declared(loop.body)
    found = accumulated(loop.body) - own
    for buffer in {s.buffer for s in stores_of(loop.body)} - own:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = all(Var(loop.var) in i for i in indices)
        if not apart:
            found.add(buffer)
    return found
