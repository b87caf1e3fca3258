"""Early returns: what follows an `if` that may return moves into the branches that do not.

    if a:                                   if a:
        return x            becomes             return x
    y = ...                                 else:
    return y                                    y = ...
                                                return y

Then both branches return, and so can the `if` itself: no flag, and no place for a value that is not there yet.  Where
both branches may go on, what follows is a function that both call.  Bodies of loops are functions by then (see
`loop_exits`), and have their returns too.

Inside of `with`, `try` and `match` the code that follows cannot be moved in; an `if` there that may or may not return
stays an `if` of Python.
"""

from __future__ import annotations

import ast

from minipd.jit.dy2static.nodes import at
from minipd.jit.dy2static.scopes import INNER, Fresh

__all__: list[str] = []

LOOPS = (ast.For, ast.While)


def may_return(node: ast.AST) -> bool:
    """Whether a statement may leave the function, or the body of the loop, that it stands in."""
    if isinstance(node, (*INNER, *LOOPS)):
        return False
    return isinstance(node, ast.Return) or any(map(may_return, ast.iter_child_nodes(node)))


def always_leaves(stmts: list[ast.stmt]) -> bool:
    """Whether nothing after these statements is ever reached."""
    for s in stmts:
        if isinstance(s, (ast.Return, ast.Raise)):
            return True
        if isinstance(s, ast.If) and always_leaves(s.body) and always_leaves(s.orelse):
            return True
        if isinstance(s, ast.Try) and (always_leaves(s.finalbody) or all(map(always_leaves, (
                [*s.body, *s.orelse], *(h.body for h in s.handlers))))):
            return True
    return False


class EarlyReturn:
    def __init__(self, fresh: Fresh):
        self.fresh = fresh

    def block(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function, or of a loop."""
        out: list[ast.stmt] = []
        for i, s in enumerate(stmts):
            if isinstance(s, LOOPS):
                s.body = self.block(s.body)
            elif isinstance(s, INNER):
                pass
            elif isinstance(s, ast.If):
                if may_return(s):
                    return out + self.returning(s, stmts[i + 1:])
                s.body, s.orelse = self.block(s.body), self.block(s.orelse)
            else:
                self.compound(s)
            out.append(s)
            if isinstance(s, ast.Return):
                break
        return out

    def returning(self, s: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """An `if` that may return, and what follows it; afterwards both branches return."""
        out: list[ast.stmt] = []
        goes_on = [b for b in (s.body, s.orelse) if not always_leaves(b)]
        if len(goes_on) == 2 and rest:
            name = self.fresh("rest_of_if")
            part = at(ast.FunctionDef(name, ast.arguments([], [], None, [], [], None, []), rest, []), rest[0])
            part.part = True
            part.body = self.block(self.ended(rest))
            out.append(part)
            rest = [at(ast.Return(ast.Call(ast.Name(name, ast.Load()), [], [])), rest[0])]
        for branch in goes_on:
            branch += rest
        s.body, s.orelse = self.block(self.ended(s.body, s)), self.block(self.ended(s.orelse, s))
        s.returns = True                # type: ignore[attr-defined]
        return [*out, s]

    def ended(self, stmts: list[ast.stmt], place: ast.stmt | None = None) -> list[ast.stmt]:
        if always_leaves(stmts):
            return stmts
        return [*stmts, at(ast.Return(ast.Constant(None)), stmts[-1] if stmts or place is None else place)]

    def compound(self, s: ast.stmt) -> None:
        """`with`, `try`, `match`: their blocks, each on its own."""
        for holder in (s, *getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                stmts = getattr(holder, name, None)
                if isinstance(stmts, list) and stmts:
                    setattr(holder, name, self.inside(stmts))

    def inside(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        if always_leaves(stmts):
            return self.block(stmts)
        for s in stmts:
            if isinstance(s, ast.If) and may_return(s):
                s.stays = True          # type: ignore[attr-defined]
                s.body, s.orelse = self.inside(s.body), self.inside(s.orelse)
            elif isinstance(s, ast.If):
                s.body, s.orelse = self.block(s.body), self.block(s.orelse)
            elif isinstance(s, LOOPS):
                s.body = self.block(s.body)
            elif not isinstance(s, INNER):
                self.compound(s)
        return stmts
