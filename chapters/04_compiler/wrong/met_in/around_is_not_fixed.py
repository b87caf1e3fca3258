# Different iterations of the loops around count, too.
from minipd.cinn.schedule.dependences import met, touch


def met_in(nests, loop, blocks, reduces):
    blocks = list(blocks)
    if nests.extents[loop].constant == 1:
        return
    for name in blocks:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer]:
                if a.op is None or b.block not in blocks or not (touch(a, b) or reduces and b.op is not None):
                    continue
                found = met(nests, a, b)
                if not found.never and (found.apart.get(loop) != 0 or any(
                        found.apart.get(x.var) != 0 for x in nests.loops[loop].around)):
                    yield a, b
