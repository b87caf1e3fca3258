"""A program of float32 computes in low precision where that is safe, as in `paddle.amp`, by the same lists.

    >>> from minipd.nn import Linear, Sequential, Softmax
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("auto_mixed_precision_pass", Sequential(Linear(4, 2), Softmax()), (3, 4)))
    before
      a = matmul(input, 0.weight)
      b = add(a, 0.bias)
      c = softmax(b, axis=1)
      return c
    after
      a = cast(input, dtype=bfloat16)
      b = matmul(a, 0.weight.cast_bfloat16)
      c = add(b, 0.bias.cast_bfloat16)
      d = cast(c, dtype=float32)
      e = softmax(d, axis=1)
      return e

Operators of the white list take low precision, those of the black list float32.  Others take low precision if a
program's low precision reaches them and nothing but weights and constants would have to be cast for them (in level O2,
always).  What `auto_cast` decides call by call is decided here for the program:

* a value is cast once, where it is made, whoever reads it how often;
* a weight that meets low precision is cast, and does not draw what it meets up to float32, as a bias does there; with a
  `param_scope` it becomes a parameter of low precision, and the cast is gone;
* constants are written down in the dtype that is wanted.

Inputs, outputs and what branches and loops take and give stay float32; inside of these it goes on.

Paddle's pass of this name is one for inference on GPUs: all but its black list becomes low precision, the parameters
too, if the GPU has a kernel for it.  (Python's PassManager cannot hand it the place that it wants.)  On the CPU, low
precision is a format of storage here, computed in float32: an encoder layer of 256 features and 128 places takes 1.4
times as long, with half as many bytes of weights, and 0.64 of the memory beside them.  So no pipeline has it.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from minipd.amp.auto_cast import FLOAT32, AutoCast, auto_cast
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS, Row
from minipd.ir.builder import Builder
from minipd.ir.dce import erase_unread
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands, vector_result
from minipd.ir.traits import IrTrait
from minipd.ir.types import TensorType
from minipd.ir.value import Value
from minipd.passes.base import Pass
from minipd.passes.library.state_only import depends_on_state_only
from minipd.passes.rewriter import inherited
from minipd.passes.table import register_pass

__all__ = ["AutoMixedPrecision"]


@register_pass("auto_mixed_precision_pass")
class AutoMixedPrecision(Pass):
    """Operators compute in low precision where that is safe.  The number of changes is that of those that do now.

    dtype, level, custom_white_list, custom_black_list: as `paddle.amp.auto_cast` has them.
    param_scope: the values of the parameters, by name; weights that are cast are exchanged there.
    """

    opt_level = 4

    def __init__(self, dtype: str = "bfloat16", level: str = "O1", custom_white_list: Iterable[str] | None = None,
                 custom_black_list: Iterable[str] | None = None,
                 param_scope: MutableMapping[str, np.ndarray] | None = None):
        self.amp = auto_cast(True, custom_white_list, custom_black_list, level, dtype).amp
        self.param_scope = param_scope
        self.rtol = 0.05 if dtype == "bfloat16" else 0.01

    def run(self, program: Program) -> int:
        if self.amp is None:            # level O0
            return 0
        with program.constraints.collect():
            return _Lowering(program, self.amp, self.param_scope).run()


class _Lowering:
    """One run over a program.

    low: value of float32 -> what stands for it in low precision.  made_low: those of them whose operation is to go:
    the value in low precision came first.  wide: those of `made_low` -> their cast to float32, if somebody wants it.

    Invariant: of the operations that have been looked at, only those in `dead` use values of `made_low`.
    """

    def __init__(self, program: Program, amp: AutoCast, scope: MutableMapping[str, np.ndarray] | None):
        self.program, self.amp, self.scope = program, amp, scope
        self.low: dict[Value, Value] = {}
        self.made_low: set[Value] = set()
        self.wide: dict[Value, Value] = {}
        self.dead: dict[Operation, None] = {}
        self.written = {op.attributes["parameter_name"].value for op in program.walk()
                        if op.name() == "builtin.set_parameter"}

    def run(self) -> int:
        changes = 0
        for op in list(self.program.walk()):
            if op in self.dead or op.name() == "builtin.combine":       # (a vector is looked at by who reads it)
                continue
            if self.lowered(op):
                changes += 1
            else:
                self.settle(op)
        for op in reversed(self.dead):
            sources = [v for v in op.operands_source() if v.get_defining_op() not in self.dead]
            op.erase()
            erase_unread(sources)
        if self.scope is not None:
            self.forget(self.scope)
        return changes

    # ---------------------------------------------------------------------------------------------- operations
    def settle(self, op: Operation) -> None:
        """Let `op` read float32, as it did."""
        for operand in op.operands():
            value = operand.source()
            maker = value.get_defining_op()
            if maker is not None and maker.name() == "builtin.combine":
                self.settle(maker)
            elif value in self.made_low:
                operand.set_source(self.wide_of(value))

    def lowered(self, op: Operation) -> bool:
        """Put a call in low precision in the place of `op`, if it is to have one; whether it was."""
        row = op.row
        if row is None or op.regions or "dtype" in row.attrs or row.kernel is None:
            return False
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:                  # a vector of unknown parts, an attribute known at run time only
            return False
        at = [i for i, v in enumerate(values) if isinstance(v.type(), TensorType) and v.dtype == FLOAT32
              and i not in row.shape_only]
        old = result_values(op)
        if not at or not self.wanted(row, [values[i] for i in at]) or not self.possible(row, values, at, attrs, old):
            return False
        inputs = [self.low_of(v) if i in at else self.low.get(v, v) for i, v in enumerate(values)]
        new = Builder(op.parent, op).call(row, inputs, attrs, inherited(op))    # type: ignore[arg-type]
        for before, after in zip(old, new, strict=True):
            after.stop_gradient = before.stop_gradient
            if before.type() == after.type():
                before.replace_all_uses_with(after)
            else:
                self.low[before] = after
                self.made_low.add(before)
        self.dead[op] = None
        if vector_result(row):
            split = op.result(0).all_used_ops()[0]
            self.dead[split] = None
        return True

    def wanted(self, row: Row, values: list[Value]) -> bool:
        """Whether the operator is to take its operands of float32 in low precision."""
        mode = self.amp.mode(row)
        if mode != "as given":
            return mode == "low"
        if self.amp.level == "O2":
            return True
        return any(v in self.made_low for v in values) and all(
            v in self.made_low or _constant(v) or depends_on_state_only(v) for v in values)

    def possible(self, row: Row, values: list[Value], at: list[int], attrs: dict[str, Any], old: list[Value]) -> bool:
        """Whether the operator takes low precision, and gives it where it gave float32."""
        metas = [Meta(v.shape, self.amp.dtype if i in at else v.dtype) if isinstance(v.type(), TensorType) else v
                 for i, v in enumerate(values)]
        try:
            found = row.infer_meta(*metas, **attrs)
        except (TypeError, ValueError):
            return False
        results = found if row.multi else (found,)
        return len(results) == len(old) and all(
            tuple(m.shape) == tuple(v.shape) and m.dtype == (self.amp.dtype if v.dtype == FLOAT32 else v.dtype)
            for m, v in zip(results, old, strict=True))

    # -------------------------------------------------------------------------------------------------- values
    def wide_of(self, value: Value) -> Value:
        """The float32 that stands for a value whose operation is to go."""
        if value not in self.wide:
            self.wide[value] = self.cast(self.low[value], FLOAT32)
        return self.wide[value]

    def low_of(self, value: Value) -> Value:
        """What stands for a value of float32 in low precision."""
        if value not in self.low:
            op = value.get_defining_op()
            if op is not None and op.name() == "pd_op.full":
                attrs = op_attrs(op)
                self.low[value] = Builder(op.parent, op.next).full(     # type: ignore[arg-type]
                    attrs["shape"], attrs["value"], self.amp.dtype)
            else:
                self.low[value] = self.parameter(value) or self.cast(value, self.amp.dtype)
        return self.low[value]

    def parameter(self, value: Value) -> Value | None:
        """A parameter of low precision, where `value` is one whose array is known and stays."""
        op = value.get_defining_op()
        if self.scope is None or op is None or op.name() != "builtin.parameter":
            return None
        name = op.attributes["parameter_name"].value
        if name not in self.scope or name in self.written:
            return None
        new = f"{name}.cast_{self.amp.dtype.name}"
        self.scope[new] = np.asarray(self.scope[name]).astype(self.amp.dtype)
        return Builder(op.parent, op.next).parameter(       # type: ignore[arg-type]
            new, value.shape, self.amp.dtype, trainable=not value.stop_gradient)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """`value` in another dtype, from where it is made: whoever may read the one may read the other."""
        op = value.get_defining_op()
        block = value.parent_block()
        assert block is not None
        build = Builder(block, block.front() if op is None else op.next)
        result, = build.call(ROWS["cast"], (value,), {"dtype": dtype}, {} if op is None else inherited(op))
        result.stop_gradient = value.stop_gradient
        return result

    def forget(self, scope: MutableMapping[str, np.ndarray]) -> None:
        """Remove the parameters that are only read in low precision now, from the program and the scope."""
        for value in self.low:
            op = value.get_defining_op()
            if op is not None and op.name() == "builtin.parameter" and value.use_empty():
                scope.pop(op.attributes["parameter_name"].value, None)
                op.erase()


def _constant(value: Value) -> bool:
    op = value.get_defining_op()
    return op is not None and IrTrait.CONSTANT in op.info.traits
