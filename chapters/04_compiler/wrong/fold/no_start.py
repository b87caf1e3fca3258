# There is no start: the buffer is read before anything was written to it.
from minipd.cinn.ir.ast import Reduce


class _Lowering:
    def _fold(self, buffer, call, op, value):
        around, folded = self.loops.of(call.operands[0]), self.axes.folded[call.number]
        gone = frozenset(loop for loop in around if folded.intersection(loop.axes))
        where = tuple(loop.var for loop in self.loops.of(call.results[0]))
        self._block(buffer, around, Reduce(buffer, where, op, value), gone)
