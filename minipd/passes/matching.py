"""Where a formula stands in a program.

The source formula of a rule is traced once into a small pattern program: nodes (`nodes`) between inputs and outputs.
It is matched along the use-def chains, starting at the operation of its first output: each step goes from what is bound
already to the operation that defines a value of the pattern, or, where only an operand is known (a second output), to
one that uses it.  Where an operation's operands commute both orders are tried, and a step that fails takes the last
choice back.

What a match must fulfil besides:

* a name that occurs twice means one value, one attribute, one list;
* a value between the inputs and the outputs has no user outside of the match (it would be gone);
* everything stands in one block;
* a gradient flows through all of it or through none: fusing what `no_grad` has cut would join it again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of
from minipd.ir.types import TensorType
from minipd.ir.value import Value
from minipd.passes.formula import Attr
from minipd.passes.nodes import Input, Inputs, Node, Output, Outputs
from minipd.passes.reading import Reader

__all__ = ["Input", "Match", "Output", "Source"]


@dataclass
class Match:
    """What a pattern's names stand for.

    values: by Input and Output.  attrs: by name.  lists: how many tensors there are in each list of any number.
    nodes: operations by node.  ops: all that is matched, bundles of variadic operands included.
    words: values between inputs and outputs that the formula names.
    """

    values: dict[Input | Output, Value] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lists: dict[Inputs | Outputs, int] = field(default_factory=dict)
    nodes: dict[Node, Operation] = field(default_factory=dict)
    ops: dict[Operation, None] = field(default_factory=dict)
    words: dict[str, Input | Output] = field(default_factory=dict)

    def copy(self) -> Match:
        return Match(dict(self.values), dict(self.attrs), dict(self.lists), dict(self.nodes), dict(self.ops),
                     self.words)

    def tensors(self) -> dict[str, Any]:
        """Values, and lists of them, by their names in the formula."""
        one = {p.name: v for p, v in self.values.items() if isinstance(p, Input) and p.index is None}
        lists = {p.name: tuple(self.values[p[i]] for i in range(n)) for p, n in self.lists.items()
                 if isinstance(p, Inputs)}
        return {**{n: self.values[p] for n, p in self.words.items()}, **one, **lists}

    def names(self) -> dict[str, Any]:
        """Tensors, lists of them and attributes by their names in the formula."""
        return {**self.tensors(), **self.attrs}

    def value(self, pattern: Input | Output, value: Value) -> bool:
        """Let a name stand for a value; False if it stands for another one."""
        return self.values.setdefault(pattern, value) is value

    def take(self, node: Node, op: Operation) -> None:
        """Let a node stand for an operation, which is matched now, and with it the bundle of its variadic operands."""
        self.nodes[node] = op
        self.ops.update(dict.fromkeys(node.parts_of(op)))

    def attr(self, name: str, value: Any) -> bool:
        """The same for an attribute."""
        return name in self.attrs and equal(self.attrs[name], value) or self.attrs.setdefault(name, value) is value

    def number(self, which: Inputs | Outputs, count: int) -> bool:
        """The same for how many tensors a list has."""
        return count >= 0 and self.lists.setdefault(which, count) == count


class Source:
    """A source formula as a pattern: nodes, which of their results are the outputs, and the order of matching.

    function: see `reading.Reader`, which reads it.  keep: values between inputs and outputs may be read by others;
    their operations stay.
    Raises: TypeError for a formula that is no pattern, saying why.
    """

    def __init__(self, function: Callable, name: str, absent: Collection[str] = (),
                 commutative: bool | Collection[str] = True, keep: bool = False):
        reader = Reader(function, name, absent, commutative)
        self.defaults, self.parameters = reader.defaults, reader.names
        self._set(reader.what, reader.nodes, reader.outputs, reader.words, reader.asked, keep)

    @classmethod
    def of(cls, what: str, nodes: Sequence[Node], outputs: Sequence[Output],
           words: dict[str, Input | Output]) -> Source:
        """The pattern that is made of these nodes.  words: names of values that are no inputs."""
        source = cls.__new__(cls)
        source.defaults, source.parameters = {}, []
        source._set(what, nodes, outputs, words, (), False)
        return source

    def _set(self, what: str, nodes: Sequence[Node], outputs: Sequence[Output | Outputs],
             words: dict[str, Input | Output], asked: Collection[str], keep: bool) -> None:
        self.what, self.nodes, self.words, self.keep = what, list(nodes), words, keep
        self.outputs: tuple[Any, ...] = tuple(outputs)
        self.plan = self._plan(self.outputs[0].node, asked)
        #: of the operations, each once
        self.names = frozenset(n.name for n in self.nodes)

    def started_at(self, node: Node) -> Source:
        """The same pattern, matched from another node on."""
        other = copy.copy(self)
        other.plan = self._plan(node, ())
        return other

    @property
    def root(self) -> Node:
        """Where matching starts."""
        return self.plan[0][0]

    def starts(self) -> list[Source]:
        """This pattern, from each of its outputs on, if it leads from one to another along users.

        It pays to start at the rarest operation: a value may have many users, and from there they are looked through
        least often."""
        if all(via is None or isinstance(via, (Output, Outputs)) and via.node is node for node, via in self.plan):
            return [self]
        roots = dict.fromkeys(o.node for o in self.outputs)
        return [self if node is self.root else self.started_at(node) for node in roots]

    def order(self, name: str) -> int:
        """Where a name stands among those of the formula; what it does not have comes last."""
        return self.parameters.index(name) if name in self.parameters else len(self.parameters)

    def _wrong(self, problem: str) -> TypeError:
        return TypeError(f"{self.what}: {problem}")

    def _plan(self, start: Node, asked: Collection[str]) -> list[tuple[Node, Input | Output | None]]:
        """The nodes in the order of matching, each with a bound value next to it: one of its results, or an operand.

        The first has none: it is where matching starts.
        """
        plan: list[tuple[Node, Input | Output | None]] = []
        known: dict[Any, None] = {}
        rest = dict.fromkeys(self.nodes)
        step: tuple[Node, Any] | None = (start, None)
        while step is not None:
            plan.append(step)
            node = step[0]
            del rest[node]
            known.update(dict.fromkeys(x for x in node.operands if isinstance(x, (Input, Output, Inputs, Outputs))))
            known.update(dict.fromkeys(node.outputs))
            defining = ((v.node, v) for v in known if isinstance(v, (Output, Outputs)) and v.node in rest)
            using = ((n, v) for n in rest for v in n.operands if v in known)
            step = next(defining, None) or next(using, None)
        if rest:
            raise self._wrong(f"{next(iter(rest)).name.partition('.')[2]} has no connection to the first result; a "
                              "pattern is one connected piece")
        bound = {p.name for p in known if isinstance(p, (Input, Inputs))} | {
            x.name for n in self.nodes for x in (*n.operands, *n.attrs.values(), getattr(n, "regions", None))
            if isinstance(x, Attr)}
        unused = [n for n in asked if n not in bound]
        if unused:
            raise self._wrong(f"parameter {unused[0]!r} occurs nowhere, so no match can tell what it stands for")
        return plan

    # ---------------------------------------------------------------------------------------------------- matching
    def matches(self, op: Operation) -> Iterator[Match]:
        """Every way in which the pattern stands in the program with its first output computed by `op`."""
        for match in self._extend(Match(words=self.words), 0, op):
            here = self.at(match)
            if here.own_input(match) is None and (here._is_closed(match) or self.keep and in_one_block(match)) and (
                    here._gradients_agree(match)):
                yield match

    def at(self, match: Match) -> Source:
        """The pattern with as many outputs as it has in this match."""
        if not any(isinstance(o, Outputs) for o in self.outputs):
            return self
        other = copy.copy(self)
        other.outputs = tuple(x for o in self.outputs for x in (
            (o[i] for i in range(match.lists[o])) if isinstance(o, Outputs) else (o,)))
        return other

    def _extend(self, match: Match, step: int, start: Operation) -> Iterator[Match]:
        """All complete matches that extend `match`, of which the first `step` nodes are bound."""
        if step == len(self.plan):
            yield match
            return
        node, via = self.plan[step]
        for op in self._candidates(node, via, match, start):
            for extended in self._bind(node, op, match):
                yield from self._extend(extended, step + 1, start)

    def _candidates(self, node: Node, via: Any, match: Match, start: Operation) -> list[Operation]:
        if via is None:
            return [start]
        value = match.values.get(via[0] if isinstance(via, (Inputs, Outputs)) else via)
        if value is None:               # an empty list leads nowhere
            return []
        if isinstance(via, (Output, Outputs)) and via.node is node:
            op = node.maker_of(value)
            return [] if op is None or op in match.ops else [op]
        return [op for op in node.users_of(value) if op not in match.ops]

    def _bind(self, node: Node, op: Operation, match: Match) -> Iterator[Match]:
        """Copies of `match` in which `node` stands for `op`: one for each order of the operands that fits.

        `op` must have the node's name, stand in a block, and have as many operands.  Each operand must meet the node's
        (`_meets`), each attribute agree with the node's (`_agrees`), and each result be the value of the node's Output
        of that index.  Operands that commute may be reversed.  `match` itself stays as it is.
        """
        if op.name() != node.name or op.parent is None:
            return
        if node.makers:                         # most candidates end here, where it costs least
            made_by = {maker.name() for v in op.operands_source() if v is not None and (maker := v.get_defining_op())}
            if not node.makers <= made_by:
                return
        try:
            operands, attrs = node.read(op)
        except ValueError:                      # a vector of unknown parts, an attribute known at run time only
            return
        results = node.results_of(op)
        wanted = spread(node, len(operands))
        if wanted is None or not node.number_fits(len(results)):
            return
        orders = [operands]
        if node.commutes and operands[0] is not operands[-1]:
            orders.append(operands[::-1])
        for order in orders:
            found = match.copy()
            if all(_meets(found, p, v) for p, v in zip(wanted, order, strict=True)) and all(
                    _agrees(found, p, attrs.get(n)) for n, p in node.attrs.items()) and all(
                    found.value(Output(node, i), v) for i, v in enumerate(results)) and (
                    node.plain or _rest(found, node, op, len(operands), len(results))):
                found.take(node, op)
                yield found

    # -------------------------------------------------------------------------------------------------- conditions
    def own_input(self, match: Match) -> Input | None:
        """An input that the match itself computes, where the result could not read it: in m + m, for m = x y, the
        second m is no bias of x y + bias.  (With `keep`, what lies between stays, and may be read.)"""
        outputs = {match.values[o] for o in self.outputs}
        return next((p for p, v in match.values.items() if isinstance(p, Input) and v.get_defining_op() in match.ops
                     and not (self.keep and v not in outputs)), None)

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
        return not any(r.stop_gradient and isinstance(r.type(), TensorType) and r.dtype in dtypes.INEXACT
                       for node, op in match.nodes.items()
                       if any(not v.stop_gradient for v in node.read(op)[0] if v is not None)
                       for r in node.results_of(op))


def in_one_block(match: Match) -> bool:
    block = next(iter(match.ops)).parent
    return all(op.parent is block for op in match.ops)


def spread(node: Node, count: int) -> tuple[Any, ...] | None:
    """What `count` operands must meet, a list spread out; None if the node has another number of them."""
    at = node.list_at
    if at is None:
        return node.operands if len(node.operands) == count else None
    rest = count - len(node.operands) + 1
    if rest < 0:
        return None
    return (*node.operands[:at], *(node.operands[at][i] for i in range(rest)), *node.operands[at + 1:])


def _rest(match: Match, node: Node, op: Operation, operands: int, results: int) -> bool:
    """Whether the lists among operands and results have the lengths that they have elsewhere, and what the node says of
    the operation as a whole agrees.  What its regions read is an input of the match, too."""
    if node.list_at is not None and not match.number(node.operands[node.list_at], operands - len(node.operands) + 1):
        return False
    if node.any_results and not match.number(Outputs(node), results):
        return False
    names, values = node.extra(op)
    return all(match.attr(n, x) for n, x in names.items()) and all(
        match.value(Input(f"read inside of {node.name} {len(match.nodes)}", i), v) for i, v in enumerate(values))


def _meets(match: Match, pattern: Any, value: Value) -> bool:
    """Whether an operand may be what the pattern says: a value of its own, or a number."""
    if isinstance(pattern, Input):
        return match.value(pattern, value)
    if isinstance(pattern, Output):         # looked at already now: most candidates fail here, and cost little
        op = pattern.node.maker_of(value)
        return op is not None and op.name() == pattern.node.name and match.value(pattern, value)
    if pattern is None or value is None:    # an operand that is left out
        return pattern is value
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
