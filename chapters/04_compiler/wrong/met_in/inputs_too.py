# Two reads meet as well: an input from which all iterations read one element seems to be in the way.
from minipd.cinn.schedule.dependences import met


def met_in(nests, loop, blocks, reduces):
    blocks = list(blocks)
    fixed = frozenset(x.var for x in nests.loops[loop].around)
    if nests.extents[loop].constant == 1:
        return
    for name in blocks:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer]:
                if b.block not in blocks or (not reduces and a.op == b.op != "="):
                    continue
                found = met(nests, a, b, fixed)
                if not found.never and found.apart.get(loop) != 0:
                    yield a, b
