"""Where a formula stands in a program.

The source formula of a rule is traced once into a small pattern program: nodes (calls of rows) between inputs and
outputs.  It is matched along the use-def chains, starting at the operation of its first output: each step goes from
what is bound already to the operation that defines a value of the pattern, or, where only an operand is known (a second
output), to one that uses it.  Where an operation's operands commute both orders are tried, and a step that fails takes
the last choice back.

What a match must fulfil besides:

* a name that occurs twice means one value, one attribute;
* a value between the inputs and the outputs has no user outside of the match (it would be gone);
* everything stands in one block;
* a gradient flows through all of it or through none: fusing what `no_grad` has cut would join it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.row import Row, Trait
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, op_attrs, result_values, tensor_operands, vector_result
from minipd.ir.value import Value
from minipd.passes.formula import Attr, Symbol

__all__ = ["Match", "Source"]


@dataclass(eq=False)
class Node:
    """A call in the pattern.  operands: Inputs, Outputs, Attrs, numbers; attrs: values and Attrs, all of the row's."""

    row: Row
    operands: tuple[Any, ...]
    attrs: dict[str, Any]

    def __post_init__(self) -> None:
        self.name = f"{self.row.dialect}.{self.row.name}"       # of the operation


@dataclass(frozen=True)
class Input:
    """A tensor that the formula is given."""

    name: str


@dataclass(frozen=True)
class Output:
    """Result `index` of a node."""

    node: Node
    index: int


@dataclass
class Match:
    """What a pattern's names stand for.  ops: all that is matched, bundles of variadic operands included."""

    values: dict[Input | Output, Value] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    nodes: dict[Node, Operation] = field(default_factory=dict)
    ops: dict[Operation, None] = field(default_factory=dict)

    def copy(self) -> Match:
        return Match(dict(self.values), dict(self.attrs), dict(self.nodes), dict(self.ops))

    def names(self) -> dict[str, Any]:
        """Tensors and attributes by their names in the formula."""
        return {**{p.name: v for p, v in self.values.items() if isinstance(p, Input)}, **self.attrs}

    def value(self, pattern: Input | Output, value: Value) -> bool:
        """Let a name stand for a value; False if it stands for another one."""
        return self.values.setdefault(pattern, value) is value

    def take(self, node: Node, op: Operation) -> None:
        """Let a node stand for an operation, which is matched now, and with it the bundle of its variadic operands."""
        self.nodes[node] = op
        self.ops[op] = None
        if node.row.variadic:
            bundle = op.operand_source(len(node.row.inputs) - 1).get_defining_op()
            assert bundle is not None, "tensor_operands has looked through it"
            self.ops[bundle] = None

    def attr(self, name: str, value: Any) -> bool:
        """The same for an attribute."""
        return name in self.attrs and equal(self.attrs[name], value) or self.attrs.setdefault(name, value) is value


class Source:
    """A traced source formula.

    function: its positional parameters are tensors, its keyword-only ones attributes that a match binds.
    Raises: TypeError for a formula that is no pattern, saying why.
    """

    def __init__(self, function: Callable, name: str):
        self.name, self.nodes = name, list[Node]()
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        self.attrs = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        result = function(*(Symbol(self, Input(n)) for n in self.inputs), **{n: Attr(n) for n in self.attrs})
        results = result if isinstance(result, tuple) else (result,)
        self.outputs = tuple(self._output(r) for r in results)
        self.plan = self._plan()

    # ----------------------------------------------------------------------------------------------- the pattern
    def call(self, row: Row, operands: tuple, attrs: dict[str, Any]) -> Any:
        """A call in the formula: a node of the pattern."""
        unknown = attrs.keys() - row.attrs.keys()
        attrs = {name: attrs.get(name, default) for name, default in row.attrs.items()}
        missing = [name for name, value in attrs.items() if value is inspect.Parameter.empty]
        if unknown or missing:
            raise self._wrong(f"{row.name} has the attributes {', '.join(row.attrs) or 'none'}; "
                              + ", ".join([f"unknown {n}" for n in unknown] + [f"missing {n}" for n in missing]))
        node = Node(row, tuple(x.meaning if isinstance(x, Symbol) else x for x in operands), attrs)
        self.nodes.append(node)
        if not row.multi:
            return Symbol(self, Output(node, 0))
        if vector_result(row):
            raise self._wrong(f"{row.name} has any number of results; match what it is made of instead")
        return tuple(Symbol(self, Output(node, i)) for i in range(len(row.outputs)))

    def _wrong(self, problem: str) -> TypeError:
        return TypeError(f"source formula of {self.name}: {problem}")

    def _output(self, result: Any) -> Output:
        if not isinstance(result, Symbol) or not isinstance(result.meaning, Output):
            raise self._wrong(f"expected it to return results of operators, got {result!r}")
        return result.meaning

    def _plan(self) -> list[tuple[Node, Input | Output | None]]:
        """The nodes in the order of matching, each with a bound value next to it: one of its results, or an operand.

        The first has none: it is where matching starts.
        """
        plan: list[tuple[Node, Input | Output | None]] = []
        known: dict[Input | Output, None] = {}
        rest = dict.fromkeys(self.nodes)
        step: tuple[Node, Input | Output | None] | None = (self.outputs[0].node, None)
        while step is not None:
            plan.append(step)
            node = step[0]
            del rest[node]
            known.update(dict.fromkeys(x for x in node.operands if isinstance(x, (Input, Output))))
            known.update((Output(node, i), None) for i in range(len(node.row.outputs)))
            defining = ((v.node, v) for v in known if isinstance(v, Output) and v.node in rest)
            using = ((n, v) for n in rest for v in n.operands if v in known)
            step = next(defining, None) or next(using, None)
        if rest:
            raise self._wrong(f"{next(iter(rest)).row.name} has no connection to the first result; a pattern is one "
                              "connected piece")
        bound = {p.name for p in known if isinstance(p, Input)} | {
            x.name for n in self.nodes for x in (*n.operands, *n.attrs.values()) if isinstance(x, Attr)}
        unused = [n for n in (*self.inputs, *self.attrs) if n not in bound]
        if unused:
            raise self._wrong(f"parameter {unused[0]!r} occurs nowhere, so no match can tell what it stands for")
        return plan

    # ---------------------------------------------------------------------------------------------------- matching
    def matches(self, op: Operation) -> Iterator[Match]:
        """Every way in which the pattern stands in the program with its first output computed by `op`."""
        for match in self._extend(Match(), 0, op):
            if self._is_closed(match) and self._gradients_agree(match):
                yield match

    def _extend(self, match: Match, step: int, start: Operation) -> Iterator[Match]:
        """All complete matches that extend `match`, of which the first `step` nodes are bound."""
        if step == len(self.plan):
            yield match
            return
        node, via = self.plan[step]
        for op in self._candidates(node, via, match, start):
            for extended in self._bind(node, op, match):
                yield from self._extend(extended, step + 1, start)

    def _candidates(self, node: Node, via: Input | Output | None, match: Match, start: Operation) -> list[Operation]:
        if via is None:
            return [start]
        value = match.values[via]
        if isinstance(via, Output) and via.node is node:
            op = value.get_defining_op()
            return [] if op is None else [op]
        return [op for op in value.all_used_ops() if op.name() == node.name and op not in match.ops]

    def _bind(self, node: Node, op: Operation, match: Match) -> Iterator[Match]:
        """Copies of `match` in which `node` stands for `op`: one for each order of the operands that fits.

        `op` must have the node's name, stand in a block, and have as many operands.  Each operand must meet the node's
        (`_meets`), each attribute agree with the node's (`_agrees`), and each result be the value of the node's Output
        of that index.  Operands of commutative operators may be reversed.  `match` itself stays as it is.
        """
        if op.name() != node.name or op.parent is None:
            return
        if not node.row.variadic:               # most candidates end here, where it costs least
            makers = {p.node.name for p in node.operands if isinstance(p, Output)}
            if makers and not makers <= {maker.name() for v in op.operands_source() if (maker := v.get_defining_op())}:
                return
        try:
            operands, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:                      # a vector of unknown parts, an attribute known at run time only
            return
        if len(operands) != len(node.operands):
            return
        orders = [operands]
        if Trait.COMMUTATIVE in node.row.traits and operands[0] is not operands[-1]:
            orders.append(operands[::-1])
        for order in orders:
            found = match.copy()
            if all(_meets(found, p, v) for p, v in zip(node.operands, order, strict=True)) and all(
                    _agrees(found, p, attrs.get(n)) for n, p in node.attrs.items()) and all(
                    found.value(Output(node, i), v) for i, v in enumerate(result_values(op))):
                found.take(node, op)
                yield found

    # -------------------------------------------------------------------------------------------------- conditions
    def _is_closed(self, match: Match) -> bool:
        """Whether all matched operations stand in one block, and those of their results that are no outputs of the
        pattern are used by matched operations only."""
        outputs = {match.values[o] for o in self.outputs}
        block = next(iter(match.ops)).parent
        return all(op.parent is block and all(r in outputs or all(u.owner() in match.ops for u in r.uses)
                                              for r in op.results()) for op in match.ops)

    def _gradients_agree(self, match: Match) -> bool:
        if all(match.values[o].stop_gradient for o in self.outputs):
            return True
        return not any(r.stop_gradient and r.dtype in dtypes.INEXACT
                       for op in match.nodes.values() if any(not v.stop_gradient for v in tensor_operands(op))
                       for r in op.results())


def _meets(match: Match, pattern: Any, value: Value) -> bool:
    """Whether an operand may be what the pattern says: a value of its own, or a number."""
    if isinstance(pattern, Input):
        return match.value(pattern, value)
    if isinstance(pattern, Output):         # looked at already now: most candidates fail here, and cost little
        op = value.get_defining_op()
        return op is not None and op.name() == pattern.node.name and match.value(pattern, value)
    number = constant_of(value) if value.shape == () else None
    return number is not None and _agrees(match, pattern, number)


def _agrees(match: Match, pattern: Any, found: Any) -> bool:
    return match.attr(pattern.name, found) if isinstance(pattern, Attr) else equal(pattern, found)


def equal(a: Any, b: Any) -> bool:
    """Equality of attributes: 1 is 1.0, True is not 1, NaN is NaN.

    >>> equal((1, 2.0), (1.0, 2)), equal(True, 1), equal(float("nan"), float("nan"))
    (True, False, True)
    """
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return bool(a == b) or bool(a != a and b != b)
