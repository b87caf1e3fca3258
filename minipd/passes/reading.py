"""Reading the functions of a rule: the source formula becomes nodes of a pattern; what each function asks for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

from minipd.framework.row import Row
from minipd.ir.dialect import info_or_unregistered
from minipd.ir.schema import vector_result
from minipd.passes.formula import Attr, Symbol, reading
from minipd.passes.nodes import Input, Inputs, Node, OperationNode, Output, Outputs, commutes

__all__ = ["Reader", "call", "optional", "parameters"]

LISTS = ("list", "tuple", list, tuple)


class Reader:
    """Runs a source formula once, on symbols, and keeps what it calls.

    function: its positional parameters are tensors, its keyword-only ones attributes that a match binds; `*xs`, and
    parameters annotated `list`, are lists of tensors.  A tensor with the default None is optional: `absent` names those
    that are None here.  commutative: see `drr`.
    asked: the parameters that must occur; defaults: what those stand for that need not, and do not.
    Raises: TypeError for a formula that is no pattern, saying why.
    """

    def __init__(self, function: Callable, name: str, absent: Collection[str], commutative: bool | Collection[str]):
        code = getattr(function, "__code__", None)
        self.what = f"source formula of {name}" + (f" ({code.co_filename}:{code.co_firstlineno})" if code else "")
        self.commutative = commutative if isinstance(commutative, bool) else frozenset(commutative)
        self.nodes: list[Node] = []
        self.words: dict[str, Input | Output] = {}
        given = parameters(function)
        self.names = [p.name for p in given]
        self.defaults: dict[str, Any] = {**{n: None for n in absent}, **{
            p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}}
        self.asked = [n for n in self.names if n not in self.defaults]
        symbols = {p.name: self._symbol(p, absent) for p in given}
        with reading(self):
            result = call(function, symbols)
        results = result if isinstance(result, (tuple, list)) else (result,)
        self.outputs = [self._output(r) for r in results]
        if not self.outputs:
            raise self._wrong("expected it to return results of operators, got none")

    def _wrong(self, problem: str) -> TypeError:
        return TypeError(f"{self.what}: {problem}")

    def _symbol(self, p: inspect.Parameter, absent: Collection[str]) -> Any:
        if p.kind is p.KEYWORD_ONLY:
            return Attr(p.name)
        if is_list(p):
            return (Symbol(self, Inputs(p.name)),)
        return None if p.name in absent else Symbol(self, Input(p.name))

    # ----------------------------------------------------------------------------------------- the interpreter
    def call(self, row: Row, operands: tuple, attrs: dict[str, Any], results: int | None) -> Any:
        """A call in the formula: a node of the pattern."""
        unknown = attrs.keys() - row.attrs.keys()
        attrs = {name: attrs.get(name, default) for name, default in row.attrs.items()}
        missing = [name for name, value in attrs.items() if value is inspect.Parameter.empty]
        if unknown or missing:
            raise self._wrong(f"{row.name} has the attributes {', '.join(row.attrs) or 'none'}; "
                              + ", ".join([f"unknown {n}" for n in unknown] + [f"missing {n}" for n in missing]))
        if results is not None and not vector_result(row):
            raise self._wrong(f"{row.name}: expected no `results`, which is for operators with any number of results; "
                              f"it has {len(row.outputs)}")
        node = self._node(row.name, operands, lambda given: Node(row, given, attrs, commutes(row, self.commutative),
                                                                 results))
        fixed, lists = len(row.inputs) - row.variadic, node.list_at is not None
        count = len(node.operands) - lists
        if count > fixed and not row.variadic or count < fixed and not lists:
            raise self._wrong(f"{row.name} takes {fixed}{' or more' if row.variadic else ''} tensors "
                              f"({', '.join(row.inputs)}), got {count}")
        if node.commutes and len(node.operands) != 2:
            raise self._wrong(f"{row.name}: expected two operands of an operator that commutes, got {count}")
        return self._results(node, row.multi)

    def operation(self, name: str, operands: tuple, attrs: dict[str, Any], results: Any, regions: Any) -> Any:
        """An operation that is no call of a row."""
        info = info_or_unregistered(name)
        if not info.registered:
            raise self._wrong(f"expected the full name of an operation, got {name!r}; operators of the table are "
                              f"written ops.{name.rpartition('.')[2]}(...)")
        if any(not isinstance(x, Symbol) and x is not None for x in operands):
            raise self._wrong(f"{name}: expected tensors, since it is matched as it stands, got {operands}")
        node = self._node(name, operands, lambda given: OperationNode(name, given, attrs, results, regions))
        return self._results(node, results != 1)

    def named(self, name: str, meaning: Any) -> None:
        if name in self.words or name in self.names or not isinstance(meaning, (Input, Output)):
            raise self._wrong(f"named({name!r}): expected a new name for one tensor, got one that there is already"
                              if isinstance(meaning, (Input, Output)) else f"named({name!r}): expected one tensor")
        self.words[name] = meaning

    def _node(self, name: str, operands: tuple, make: Callable[[tuple], Node]) -> Any:
        given = tuple(x.meaning if isinstance(x, Symbol) else x for x in operands)
        try:
            node = make(given)
        except ValueError as error:
            raise self._wrong(f"{name}: {error}") from None
        self.nodes.append(node)
        return node

    def _results(self, node: Node, several: bool) -> Any:
        if node.any_results:
            return (Symbol(self, Outputs(node)),)
        symbols = tuple(Symbol(self, o) for o in node.outputs)
        return symbols if several else symbols[0]

    def _output(self, result: Any) -> Output | Outputs:
        if not isinstance(result, Symbol) or not isinstance(result.meaning, (Output, Outputs)):
            raise self._wrong(f"expected it to return results of operators, got {result!r}")
        return result.meaning


def is_list(p: inspect.Parameter) -> bool:
    return p.kind is p.VAR_POSITIONAL or p.annotation in LISTS


@functools.cache
def parameters(function: Callable) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def optional(function: Callable) -> list[str]:
    """The tensors that may be missing."""
    return [p.name for p in parameters(function) if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is None]


def call(function: Callable, names: dict[str, Any]) -> Any:
    """Call a function of a rule with those of the names that it asks for."""
    args: list[Any] = []
    named: dict[str, Any] = {}
    for p in parameters(function):
        if p.kind is p.VAR_POSITIONAL:
            args += names[p.name]
        elif p.kind is p.KEYWORD_ONLY:
            named[p.name] = names[p.name]
        else:
            args.append(names[p.name])
    return function(*args, **named)


