"""What a pass does to a function, as text: the program before and after, one short line for each operation.

    >>> from minipd.nn.functional import sigmoid
    >>> show(before_after("silu_fuse_pass", lambda x: x * sigmoid(x), "f32[2, 3]"))
    before
      a = sigmoid(x)
      b = multiply(x, a)
      return b
    after
      a = silu(x)
      return a

Attributes are shown where they are not the default.  Constants stand where they are used, results that nothing
reads are `_`, operations in branches and loops are indented.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ir.attributes import Attribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, is_attribute_only, mutable_operands, op_attrs, result_values, tensor_operands
from minipd.ir.traced import trace
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value
from minipd.ir.verify import verify
from minipd.nn.layer import Layer
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.manager import PassManager
from minipd.passes.table import create_pass, pass_options
from minipd.static.input import InputSpec, parse_spec

__all__ = ["Brief", "Line", "before_after", "brief", "program_of", "show"]


def show(text: str) -> None:
    """Print it.  (The name is what examples read best with.)"""
    print(text)


def before_after(name: str, function: Callable, *specs: Any, **options: Any) -> str:
    """The program of `function` before and after the pass `name`, as text.

    specs: an input each, as "f32[2, S]", a shape of float32, or an `InputSpec`.  function: its parameters name the
    inputs; of a Layer, parameters are program state.  options: of the pass; one that takes a `param_scope` is given the
    state, with random values.

    Checks that the program is well formed afterwards, and computes the same on random inputs: to the bit, if the pass
    is `exact`.

    Raises: what a pass raises; AssertionError where the program does not compute the same, which says where.
    """
    program = program_of(function, *specs)
    changed, state = program.clone(), random_state(program)
    feed, after = random_feed(program), dict(state)
    if "param_scope" in pass_options(name):
        options.setdefault("param_scope", after)
    made = create_pass(name, options)
    manager = PassManager(opt_level=4, debug=True)
    manager.add_pass(made)
    manager.run(changed)
    verify(changed)
    rtol = 0.0 if getattr(made, "exact", False) else getattr(made, "rtol", None)
    found = difference(outcome(program, feed, state), outcome(changed, feed, after), rtol)
    if found is not None:
        raise AssertionError(f"{name}: expected the program to compute the same afterwards, got {found}")
    return "\n".join(["before", *_indented(brief(program)), "after", *_indented(brief(changed))])


def program_of(function: Callable, *specs: Any) -> Program:
    """The program of a function or a layer; specs: see `before_after`."""
    plain = function.forward if isinstance(function, Layer) else function
    names = [p.name for p in inspect.signature(plain).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    inputs = [_spec(spec, name) for spec, name in itertools.zip_longest(specs, names[:len(specs)])]
    state: dict[str, Tensor] = {}
    if isinstance(function, Layer):
        state = {**dict(function.named_parameters()), **dict(function.named_buffers())}
    return trace(function, *inputs, state=state).program


def _spec(spec: Any, name: str | None) -> Any:
    if isinstance(spec, str):
        return parse_spec(spec, name)
    if isinstance(spec, (tuple, list)):
        return InputSpec(spec, "float32", name)
    return spec


# ------------------------------------------------------------------------------------------------------ as text
def brief(program: Program) -> str:
    """The program, one short line for each operation: results are named a, b, c, ..., inputs and state as they are.

    >>> print(brief(program_of(lambda x: (x * 2.0).sum(1), (2, 3))))
    a = multiply(x, 2.0)
    b = sum(a, axis=(1,))
    return b
    """
    return Brief(program).text


@dataclass(frozen=True)
class Line:
    """One line of the short text.  op: the operation that it is of; None for what a block gives.  depth: how many
    regions are around it."""

    words: str
    op: Operation | None = None
    depth: int = 0

    def __str__(self) -> str:
        return "  " * self.depth + self.words


class Brief:
    """The short text of a program, and what its values are called there.

    given: names for some of them, which no others get.
    """

    def __init__(self, program: Program, given: Mapping[Value, str] | None = None) -> None:
        self.given = dict(given or {})
        self.names: dict[Value, str] = {}
        taken = {op.attributes[n].value for op in program.walk() for n in ("name", "parameter_name")
                 if op.name() in ("pd_op.data", "builtin.parameter") and n in op.attributes} | {*self.given.values()}
        self.fresh = (name for name in _letters() if name not in taken)
        self.lines = list(self.block(program.global_block()))

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.lines))

    def block(self, block: Block, depth: int = 0) -> Iterator[Line]:
        """The lines of a block; its outputs are its last line."""
        outputs: list[str] = []
        for op in block:
            match op.name():
                case "pd_op.data":
                    self.names[op.result(0)] = op.attributes["name"].value
                case "builtin.parameter":
                    self.names[op.result(0)] = op.attributes["parameter_name"].value
                case "builtin.shadow_output" | "cf.yield" | "pd_op.fetch":
                    outputs += map(self.name, op.operands_source())
                    for r in op.results():
                        self.names[r] = outputs[-1]
                case "builtin.set_parameter":
                    words = f"{op.attributes['parameter_name'].value} <- {self.name(op.operand_source(0))}"
                    yield Line(words, op, depth)
                case "builtin.combine":
                    self.names[op.result(0)] = "[" + ", ".join(map(self.name, op.operands_source())) + "]"
                case "builtin.split" if op.result(0) in self.names:
                    pass
                case _ if IrTrait.CONSTANT in op.info.traits and self.stands_inside(op):
                    self.names[op.result(0)] = self.constant(op)
                case _:
                    yield from self.operation(op, depth)
        if outputs:
            yield Line(f"return {', '.join(outputs)}", None, depth)

    def operation(self, op: Operation, depth: int) -> Iterator[Line]:
        """The line of an operation, and those of its regions."""
        called, arguments = op.name().removeprefix("pd_op.").removeprefix("builtin."), self.arguments(op)
        made = result_values(op) or op.results()        # of a vector, what it is taken apart into
        for r in made:
            self.names[r] = self.given.get(r) or ("_" if len(made) > 1 and r.use_empty() else next(self.fresh))
        results = ", ".join(self.names[r] for r in made)
        yield Line((f"{results} = " if results else "") + f"{called}({', '.join(arguments)})", op, depth)
        for i, block in enumerate(op.blocks()):
            if i:
                yield Line("else", op, depth)
            for arg in block.args():
                self.names[arg] = self.given.get(arg) or next(self.fresh)
            if block.args():
                yield Line(f"given {', '.join(self.names[a] for a in block.args())}", op, depth + 1)
            yield from self.block(block, depth + 1)

    def arguments(self, op: Operation) -> list[str]:
        """Operands, and attributes that are not the default."""
        row = op.row
        if row is None:
            quiet = ("stop_gradient", "op_callstack", "op_role", "struct_name")
            return [*map(self.name, op.operands_source()),
                    *(f"{n}={_text(a)}" for n, a in sorted(op.attributes.items()) if n not in quiet)]
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:              # an attribute, or a vector, that only the run knows
            return [*map(self.name, op.operands_source())]
        order = [*(n for n in row.attrs if n not in row.mutable), *mutable_operands(op)]
        shown = {n: attrs[n] for n in sorted(attrs, key=order.index) if not _is(attrs[n], row.attrs.get(n))}
        return [*map(self.name, values), *(f"{n}={_text(a)}" for n, a in shown.items())]

    def name(self, value: Value) -> str:
        return self.names.get(value, "?")

    def stands_inside(self, op: Operation) -> bool:
        """Whether a constant is written where it is used: one number, or what only spells attributes."""
        return is_attribute_only(op) or op.result(0).shape == ()

    def constant(self, op: Operation) -> str:
        return _text(constant_of(op.result(0)))


def _is(value: Any, default: Any) -> bool:
    return default is not inspect.Parameter.empty and type(value) is type(default) and bool(value == default)


def _text(value: Any) -> str:
    if isinstance(value, Attribute):
        return value.text(exact=False)
    return str(value) if hasattr(value, "kind") and hasattr(value, "itemsize") else repr(value)


def _letters() -> Iterator[str]:
    """a, b, ..., z, a1, b1, ..."""
    for n in itertools.count():
        yield from (f"{letter}{n or ''}" for letter in "abcdefghijklmnopqrstuvwxyz")


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
