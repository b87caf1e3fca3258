"""Names for what is computed, each once.

`merge`: what the same statements compute under two names has one; names mean one thing wherever both are known.

    {                                   multiply_7 = v0 * rsqrt_6
      multiply_7 = v0 * rsqrt_6         sum_10 += multiply_7
      sum_10 += multiply_7              y0[i, j] = multiply_7 * v1
    }
    {
      multiply_7 = v0 * rsqrt_6
      y0[i, j] = multiply_7 * v1
    }

`rearrange_load_instruction`: elements of inputs are loaded in statements of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from minipd.cinn.ir.ast import (
    STORAGE_ONLY,
    Accumulate,
    Cast,
    Const,
    Expr,
    For,
    Function,
    IfThenElse,
    Init,
    Let,
    Load,
    Reduce,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.walk import buffers_written, loads, map_children, map_expressions, names, stmts_of, substitute
from minipd.cinn.optim.tree import accumulated, numbered

__all__ = ["merge", "rearrange_load_instruction"]


def merge(function: Function, originals: Mapping[str, str] = {}) -> Function:  # noqa: B006  (read only)
    """The function in which no scope has a name twice, nor one value under two names.

    originals: what scalars should be called, if it is another name than they have.
    """
    return replace(function, body=_Merge(function, False, originals).run())


def rearrange_load_instruction(function: Function) -> Function:
    """The same, with a Let for each element of an input."""
    return replace(function, body=_Merge(function, True).run())


class _Scope:
    """What is known at a place.

    renamed: what each name of the old text stands for.  values: what has a name already.  taken: names in the new text.
    """

    def __init__(self, renamed: dict[str, Expr], values: dict[Expr, Var], taken: set[str]) -> None:
        self.renamed, self.values, self.taken = renamed, values, taken

    def inner(self) -> _Scope:
        return _Scope(dict(self.renamed), dict(self.values), set(self.taken))

    def forget(self, buffers: set[str], scalars: set[str]) -> None:
        """Values that depend on what changes have no name any more."""
        if buffers or scalars:
            self.values = {e: v for e, v in self.values.items() if not loads(e) & buffers and not names(e) & scalars}


class _Merge:
    def __init__(self, function: Function, name_loads: bool, originals: Mapping[str, str] = {}) -> None:  # noqa: B006
        self.originals = originals
        self.function = function
        self.name_loads = name_loads
        self.inputs = {p.name for p in function.params if not p.output}
        self.params = {p.name for p in function.params}
        self.accumulators = accumulated(function.body)

    def run(self) -> Stmt:
        out: list[Stmt] = []
        self.sequence(stmts_of(self.function.body), _Scope({}, {}, set()), out)
        return Seq(tuple(out))

    def sequence(self, stmts: Iterable[Stmt], scope: _Scope, out: list[Stmt]) -> None:
        for x in stmts:
            match x:
                case Seq(stmts=inside):
                    renamed = dict(scope.renamed)
                    self.sequence(inside, scope, out)
                    scope.renamed = renamed
                case Let(name=name):
                    value = self.expression(x.value, scope, out, also_whole=False)
                    self.let(name, value, scope, out)
                case For(var=var, extent=extent, body=body):
                    scope.forget(buffers_written(x), accumulated(x))
                    inner = scope.inner()
                    inner.taken.add(var)
                    inside_loop: list[Stmt] = []
                    self.sequence((body,), inner, inside_loop)
                    out.append(replace(x, extent=substitute(extent, scope.renamed), body=Seq(tuple(inside_loop))))
                case IfThenElse(cond=cond, then=then, orelse=orelse):
                    arms = [None if arm is None else self.arm(arm, scope) for arm in (then, orelse)]
                    assert arms[0] is not None
                    out.append(IfThenElse(substitute(cond, scope.renamed), arms[0], arms[1]))
                    scope.forget(buffers_written(x), accumulated(x))
                case Init(name=name, value=value):
                    value = self.expression(value, scope, out)
                    new = self.name(name, scope)
                    scope.renamed[name] = Var(new, value.dtype)
                    out.append(Init(new, value))
                case Accumulate(name=name):
                    value = self.expression(x.value, scope, out)
                    target = scope.renamed.get(name)
                    new = target.name if isinstance(target, Var) else name
                    out.append(Accumulate(new, x.op, value))
                    scope.forget(set(), {new})
                case Store(buffer=buffer) | Reduce(buffer=buffer):
                    out.append(map_expressions(lambda e: self.expression(e, scope, out), x))
                    scope.forget({buffer}, set())
                case _:
                    out.append(map_expressions(lambda e: substitute(e, scope.renamed), x))

    def arm(self, s: Stmt, scope: _Scope) -> Stmt:
        inside: list[Stmt] = []
        self.sequence((s,), scope.inner(), inside)
        return Seq(tuple(inside))

    def let(self, name: str, value: Expr, scope: _Scope, out: list[Stmt]) -> None:
        known = scope.values.get(value)
        if isinstance(value, Const) or isinstance(value, Var) and value.name not in self.accumulators:
            scope.renamed[name] = value
        elif known is not None:
            scope.renamed[name] = known
        else:
            new = self.name(name, scope)
            scope.renamed[name] = scope.values[value] = Var(new, value.dtype)
            out.append(Let(new, value))

    def name(self, name: str, scope: _Scope) -> str:
        """`name`, or with a number behind it, as it is free here."""
        new = numbered(self.originals.get(name, name), scope.taken | self.params)
        scope.taken.add(new)
        return new

    def expression(self, e: Expr, scope: _Scope, out: list[Stmt], also_whole: bool = True) -> Expr:
        """e in the new names; `also_whole`: whether it needs a name of its own if it is an element of an input."""
        e = substitute(e, scope.renamed)
        return self.loads(e, scope, out, also_whole) if self.name_loads else e

    def loads(self, e: Expr, scope: _Scope, out: list[Stmt], also_whole: bool) -> Expr:
        element = e.x if isinstance(e, Cast) and e.x.dtype in STORAGE_ONLY else e
        if isinstance(element, Load) and element.buffer in self.inputs and (
                element is not e or e.dtype not in STORAGE_ONLY):
            if not also_whole:
                return e
            name = f"v{element.buffer[1:]}" if element.buffer.startswith("x") else f"{element.buffer}_value"
            inner: dict[str, Expr] = dict(scope.renamed)
            self.let(name, e, scope, out)
            found = scope.renamed[name]
            scope.renamed = inner
            return found
        return map_children(lambda x: self.loads(x, scope, out, True), e)
