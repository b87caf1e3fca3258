# An index in which the variable occurs somewhere, also in i - 1 or i * 0.
from minipd.cinn.ir.walk import names
from minipd.cinn.schedule.tree import accumulated, declared, loads_of, stores_of


def dependences(loop):
    own = declared(loop.body)
    found = accumulated(loop.body) - own
    for buffer in {s.buffer for s in stores_of(loop.body)} - own:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = any(all(k < len(i) and loop.var in names(i[k]) for i in indices) for k in range(len(indices[0])))
        if not apart:
            found.add(buffer)
    return found
