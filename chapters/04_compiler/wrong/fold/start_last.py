# The start comes behind what it should start.
from minipd.cinn.ir.ast import Reduce, Store
from minipd.cinn.ir.build import identity


class _Lowering:
    def _fold(self, buffer, call, op, value):
        around, folded = self.loops.of(call.operands[0]), self.axes.folded[call.number]
        kept = tuple(loop for loop in around if not folded.intersection(loop.axes))
        where = tuple(loop.var for loop in self.loops.of(call.results[0]))
        self._block(buffer, around, Reduce(buffer, where, op, value), frozenset(around) - frozenset(kept))
        self._block(f"{buffer}__reduce_init", kept, Store(buffer, where, identity(op, value.dtype)))
