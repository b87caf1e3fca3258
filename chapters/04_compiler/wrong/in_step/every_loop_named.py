# All loops by their names, common or not, and in any order of axes: x[j, i] and y[i, j].
from minipd.cinn.ir.walk import names


def _in_step(load, store):
    return sorted(set().union(*map(names, load.at))) == sorted(set().union(*map(names, store.at))) and all(
        {loop.var for loop in x.loops} <= set().union(*map(names, x.at)) for x in (load, store))
