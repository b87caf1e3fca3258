# Inputs count, though nobody writes them: y[i] = x[0] seems to meet in x.
from minipd.cinn.ir.ast import Var
from minipd.cinn.schedule.tree import accumulated, declared, loads_of, stores_of


def dependences(loop):
    own = declared(loop.body)
    found = accumulated(loop.body) - own
    for buffer in {s.buffer for s in stores_of(loop.body) + loads_of(loop.body)} - own:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = any(all(k < len(i) and i[k] == Var(loop.var) for i in indices) for k in range(len(indices[0])))
        if not apart:
            found.add(buffer)
    return found
