"""Groups for tests: a Python function is traced, and everything in its program is one group."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.verify import verify
from minipd.cinn.lower import lower_group
from minipd.framework import dtype as dtypes
from minipd.framework.dim import bind_shape, substitute_all
from minipd.framework.meta import Meta
from minipd.ir.evaluate import evaluate
from minipd.ir.traced import trace

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass
class Group:
    """The operations, what they read and what is wanted of them; `program` runs them one after the other."""

    program: object
    ops: list
    operands: list
    results: list

    def lower(self, **options) -> Function:
        """In block form, checked."""
        function = lower_group(self.ops, self.operands, self.results, **options)
        verify(function)
        return function

    def reference(self, *arrays):
        """What library kernels give: the meaning of the group."""
        feed = dict(zip(self.operands, arrays, strict=True))
        sizes = self.sizes(arrays)
        found = []
        with np.errstate(all="ignore"):
            evaluate(self.program, lambda row, payloads, attrs: row.kernels[_code(row, payloads)](
                         *payloads, **substitute_all(attrs, sizes)),
                     lambda op: feed[op.result(0)], lambda op, payload: found.append(np.asarray(payload)))
        return found

    def sizes(self, arrays) -> dict[str, int]:
        """What symbolic dimensions are for these arrays."""
        sizes: dict[str, int] = {}
        for v, a in zip(self.operands, arrays, strict=True):
            bind_shape(v.shape, a.shape, sizes, "an operand")
        return sizes


def _code(row, payloads):
    arrays = [p for p in (*payloads[row.key:], *payloads) if hasattr(p, "dtype")]
    return dtypes.CODE_OF_NUM[arrays[0].dtype.num] if arrays else 0


def group(fn, *specs):
    """The group of `fn`; specs: (shape, dtype) of each argument."""
    program = trace(fn, *(Meta(tuple(shape), np.dtype(dtype)) for shape, dtype in specs)).program
    ops = list(program.global_block())
    inputs = [op.result(0) for op in ops if op.name() == "pd_op.data"]
    results = [op.operand_source(0) for op in ops if op.name() == "builtin.shadow_output"]
    inside = [op for op in ops if op.name() not in ("pd_op.data", "builtin.shadow_output")]
    return Group(program, inside, inputs, results)


def run(function, group, *arrays):
    """What the function gives, by the loop interpreter."""
    sizes = group.sizes(arrays)
    shapes = [substitute_all(tuple(v.shape), sizes) for v in group.results]
    outputs = [np.empty(s, v.dtype) for s, v in zip(shapes, group.results, strict=True)]
    interpret(function, list(arrays), outputs)
    return outputs
