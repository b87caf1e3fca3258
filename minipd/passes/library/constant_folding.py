"""What depends on constants alone is computed now, by the kernel that would compute it later.

    >>> from minipd.nn import Layer
    >>> from minipd.ops.creation import full
    >>> from minipd.passes.show import before_after, show
    >>> class Doubled(Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = self.create_parameter([4, 3])
    ...     def forward(self, x):
    ...         return x @ (self.w.t() * 2.0) + full([1], 3.0) * 0.5
    >>> show(before_after("constant_folding_pass", Doubled(), (2, 3)))
    before
      a = transpose(w, perm=(1, 0))
      b = multiply(a, 2.0)
      c = matmul(x, b)
      d = full(shape=(1,), value=3.0, dtype=float32)
      e = multiply(d, 0.5)
      f = add(c, e)
      return f
    after
      a = matmul(x, constant_folding@_0)
      b = full(shape=(1,), value=1.5, dtype=float32)
      c = add(a, b)
      return c

With a `param_scope` parameters are constants too, and what is computed from them becomes a new parameter, in the
program and in the scope; parameters that nothing reads any more are removed from both.  That is for inference: nobody
asks for gradients of such a program, or trains it.

Without one, a result must be a constant that a program can write down: a `pd_op.full` where all elements are the same
to the bit, a `pd_op.full_int_array` for a list of int64.  (What lies between constants and such a result need not be.)

Not folded: draws of random numbers, collectives and other effects, what reads state that the program writes, what is
symbolic; without a scope, what a gradient flows through, and calls with more than `max_elements` in an operand or a
result, so that compiling costs no more than a run; with one, views that are larger than what they view, as an `expand`
is, which cost a run nothing.

Paddle's pass turns the constants themselves into parameters, folds any `expand`, needs a scope and a place, and leaves
what has become dead (parameters, `builtin.combine`) to the next pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import MutableMapping
from typing import Any

import numpy as np

from minipd.framework.context import Kernels
from minipd.framework.dim import is_symbolic
from minipd.framework.meta import Meta, describe
from minipd.framework.row import ROWS, Trait
from minipd.ir.builder import Builder
from minipd.ir.dce import erase_unread
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import is_pure, op_attrs, tensor_operands, vector_result
from minipd.ir.traits import IrTrait
from minipd.ir.types import VectorType
from minipd.ir.value import Value
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["ConstantFolding"]

#: as many numbers may stand in a full_int_array
MAX_LISTED = 64
#: what new parameters are called, with a number behind it (Paddle's name)
PREFIX = "constant_folding@_"

Scope = MutableMapping[str, np.ndarray]
#: what values always are: arrays; of a vector, which `split` gives, one for each part
Known = dict[Value, Any]


@register_pass("constant_folding_pass")
class ConstantFolding(Pass):
    """What depends on constants alone is computed now.

    The number of changes is the number of operations that have become constants.

    max_elements: what is larger is not folded, unless it depends on parameters.
    param_scope: the values of the parameters, by name; is changed.

    >>> from minipd.framework.meta import Meta, describe
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> from minipd.ops.creation import full
    >>> program = trace(lambda x: x + full([2], 3.0) * 0.5, Meta((2,), dtypes.float32.np)).program
    >>> ConstantFolding().run(program)
    1
    >>> [op.attributes["value"].value for op in program.global_block() if op.name() == "pd_op.full"]
    [1.5]
    """

    exact = True

    def __init__(self, max_elements: int = 1 << 16, param_scope: Scope | None = None):
        self.max_elements, self.param_scope = max_elements, param_scope
        self.exact = param_scope is None        # a transposed weight that lies in order meets another BLAS kernel

    def run(self, program: Program) -> int:
        known: Known = _state(program, self.param_scope) if self.param_scope is not None else {}
        self._taken = {*program.parameters(), *(() if self.param_scope is None else self.param_scope)}
        self._numbers = itertools.count()
        folded: dict[Operation, None] = {}
        for op in program.walk():
            arrays = self._computed(op, known)
            if arrays is not None:
                known.update(zip(op.results(), arrays, strict=True))
                folded[op] = None
        changes = 0
        for op in reversed(folded):         # users first: whether a value must be written down depends on who stays
            changes += self._replaced(op, known, program)
        if changes and self.param_scope is not None:
            self._forget(program)
        return changes

    # ------------------------------------------------------------------------------------------------- computing
    def _computed(self, op: Operation, known: Known) -> list[Any] | None:
        """What the kernel gives; None if an operand or attribute is not known, or the call is none to fold."""
        row = op.row
        if op.name() == "builtin.split":
            return known.get(op.operand_source(0))
        if row is None or row.kernel is None or row.dialect != "pd_op" or not is_pure(op) or (
                op.info.traits & {Trait.RANDOM, Trait.COMM, IrTrait.CONSTANT}):
            return None
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:
            return None
        payloads = [Meta(v.shape, v.dtype) if i in row.shape_only and not is_symbolic(v.shape) else
                    self._array(v, known) for i, v in enumerate(values)]
        if is_symbolic(attrs) or any(p is None for p in payloads) or not self._allowed(op, values):
            return None
        try:
            with np.errstate(all="ignore"):
                out = Kernels().run(row, payloads, attrs)
        # whatever a kernel, a user's too, raises: it may stand in a branch never taken, and where it runs, it tells
        except Exception:
            return None
        return [list(out)] if vector_result(row) else list(out) if row.multi else [out]

    def _array(self, value: Value, known: Known) -> np.ndarray | None:
        """The array that `value` always is."""
        if value in known:
            return known[value]
        source = value.get_defining_op()
        if source is None or source.row is None or IrTrait.CONSTANT not in source.info.traits or (
                self.param_scope is None and not value.stop_gradient):
            return None
        attrs = op_attrs(source)            # a `full` may hold a size that only the run knows
        if is_symbolic(attrs) or not self._small(value):
            return None
        known[value] = Kernels().run(source.row, [], attrs)
        return known[value]

    def _allowed(self, op: Operation, values: list[Value]) -> bool:
        """Whether the results may be computed once for all runs."""
        row = op.row
        assert row is not None
        results = [tensor for r in op.results() for tensor in _tensors(r.type())]
        if any(is_symbolic(t.shape) for t in results):
            return False
        if self.param_scope is None:
            return bool(values) and all(r.stop_gradient for r in op.results()) and all(map(self._small, results))
        return not row.view or all(map(self._small, results)) or _size(results[0]) <= max(
            map(_size, values), default=0)

    def _small(self, meta: Any) -> bool:
        return not is_symbolic(meta.shape) and _size(meta) <= self.max_elements

    # --------------------------------------------------------------------------------------------------- writing
    def _replaced(self, op: Operation, known: Known, program: Program) -> bool:
        """Whether `op` is gone, and constants stand for the results that are used."""
        used = [r for r in op.results() if not r.use_empty()]
        if any(isinstance(r.type(), VectorType) for r in used):
            return False                    # a vector is no constant, if not all of its parts are
        made = [None if self.param_scope is not None and known[r].size > MAX_LISTED else constant_holding(known[r])
                for r in used]              # (a run reads a parameter, and fills a `full`)
        if self.param_scope is None and None in made:
            return False
        build = Builder(op.parent, op)      # type: ignore[arg-type]
        for result, constant in zip(used, made, strict=True):
            result.replace_all_uses_with(self._parameter(known[result], program) if constant is None
                                         else _write(build, constant))
        sources = op.operands_source()
        op.erase()
        erase_unread(sources)
        return True

    def _parameter(self, array: np.ndarray, program: Program) -> Value:
        assert self.param_scope is not None
        name = next(n for i in self._numbers if (n := f"{PREFIX}{i}") not in self._taken)
        self.param_scope[name] = np.ascontiguousarray(array)
        build = Builder(program.global_block(), program.global_block().front())
        return build.parameter(name, array.shape, array.dtype, trainable=False)

    def _forget(self, program: Program) -> None:
        """Remove parameters that nothing reads, from the program and from the scope."""
        assert self.param_scope is not None
        for name, value in program.parameters().items():
            if value.use_empty():
                op = value.get_defining_op()
                assert op is not None
                op.erase()
                self.param_scope.pop(name, None)


def _size(meta: Any) -> int:
    return math.prod(meta.shape)


def _tensors(kind: Any) -> tuple[Any, ...]:
    """The types of the tensors in a vector, or of the one tensor."""
    return kind.types if isinstance(kind, VectorType) else (kind,)


def _state(program: Program, scope: Scope) -> Known:
    """The parameters that a run finds in the scope and leaves as they are."""
    written = {op.attributes["parameter_name"].value for op in program.walk() if op.name() == "builtin.set_parameter"}
    found: Known = {}
    for name, value in program.parameters().items():
        if name in scope and name not in written and not is_symbolic(value.shape):
            array = np.asarray(scope[name])
            if array.shape != value.shape or array.dtype != value.dtype:
                want, got = describe(Meta(value.shape, value.dtype)), describe(Meta(array.shape, array.dtype))
                raise ValueError(f"constant_folding_pass: expected param_scope[{name!r}] to be {want}, got {got}")
            found[value] = array
    return found


def constant_holding(array: np.ndarray) -> tuple[str, dict[str, Any]] | None:
    """Name and attributes of the constant that holds exactly `array`; None if there is none.

    Exactly: shape, dtype and every bit, so that 0.0 is not -0.0, and a NaN is itself.  There are

        "full"              {"shape": ..., "value": a Python number, "dtype": ...}, one number everywhere
        "full_int_array"    {"value": a tuple of ints, "dtype": int64}, a list of at most MAX_LISTED numbers

    `Kernels().run(ROWS[name], [], attrs)` makes the array of a constant.
    """
    attempts: list[tuple[str, dict[str, Any]]] = []
    if array.size:
        attempts.append(("full", {"shape": array.shape, "value": array.reshape(-1)[0].item(), "dtype": array.dtype}))
    else:
        attempts.append(("full", {"shape": array.shape, "value": 0, "dtype": array.dtype}))
    if array.ndim == 1 and array.dtype == np.int64 and array.size <= MAX_LISTED:
        attempts.append(("full_int_array", {"value": tuple(array.tolist()), "dtype": array.dtype}))
    for name, attrs in attempts:
        again = Kernels().run(ROWS[name], [], attrs)
        if again.shape == array.shape and again.dtype == array.dtype and (
                np.ascontiguousarray(again).tobytes() == np.ascontiguousarray(array).tobytes()):
            return name, attrs
    return None


def _write(build: Builder, constant: Any) -> Value:
    name, attrs = constant
    if name == "full":
        return build.full(attrs["shape"], attrs["value"], attrs["dtype"])
    return build.constant(attrs["value"])
