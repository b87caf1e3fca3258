"""Where the iterations of a loop in flat form meet."""

from __future__ import annotations

from minipd.cinn.ir.ast import For, Var
from minipd.cinn.schedule.tree import accumulated, declared, loads_of, stores_of

__all__ = ["dependences"]


def dependences(loop: For) -> set[str]:
    """The buffers and accumulators from outside the loop through which one iteration may meet another.

    A buffer that is written is harmless if one of its axes is indexed by the loop variable, everywhere in the body.
    """
    own = declared(loop.body)
    found = accumulated(loop.body) - own
    for buffer in {s.buffer for s in stores_of(loop.body)} - own:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = any(all(k < len(i) and i[k] == Var(loop.var) for i in indices) for k in range(len(indices[0])))
        if not apart:
            found.add(buffer)
    return found
