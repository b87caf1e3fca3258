# That iterations add to one element never counts: a sum could run on several threads.
from minipd.cinn.schedule.dependences import met, touch


def met_in(nests, loop, blocks, reduces):
    blocks = list(blocks)
    fixed = frozenset(x.var for x in nests.loops[loop].around)
    if nests.extents[loop].constant == 1:
        return
    for name in blocks:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer]:
                if a.op is not None and b.block in blocks and touch(a, b):
                    found = met(nests, a, b, fixed)
                    if not found.never and found.apart.get(loop) != 0:
                        yield a, b
