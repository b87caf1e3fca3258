# A loop of one iteration is not thought of: its only iteration seems to meet others.
from minipd.cinn.schedule.dependences import met, touch


def met_in(nests, loop, blocks, reduces):
    blocks = list(blocks)
    fixed = frozenset(x.var for x in nests.loops[loop].around)
    for name in blocks:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer]:
                if a.op is None or b.block not in blocks or not (touch(a, b) or reduces and b.op is not None):
                    continue
                found = met(nests, a, b, fixed)
                if not found.never and found.apart.get(loop) != 0:
                    yield a, b
