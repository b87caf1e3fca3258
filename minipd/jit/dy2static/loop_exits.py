"""break, continue and return inside of loops: a loop's body becomes a function, and leaves it by returning.

    for x in xs:                            did_break_0 = False
        if x > 3:                           for x in xs:                # stops when did_break_0 is true
            break           becomes             if x > 3:
        if x < 0:                                   did_break_0 = True
            return x                                return
    else:                                       if x < 0:
        y = 1                                       return_value_0 = x; did_return_0 = True; did_break_0 = True
                                                    return
                                            if did_return_0:
                                                return return_value_0
                                            if not did_break_0:
                                                y = 1

The flags are variables like any other: Python's as long as the conditions are Python's, tensors where they are tensors.
"""

from __future__ import annotations

import ast

from minipd.jit.dy2static.nodes import assign, call, load
from minipd.jit.dy2static.scopes import INNER, Fresh

__all__: list[str] = []


class Loop:
    """stop: the flag that ends it, used if `stops`.  returns: whether there is a return inside."""

    def __init__(self, stop: str):
        self.stop, self.stops, self.returns = stop, False, False


class LoopExits:
    def __init__(self, fresh: Fresh):
        self.fresh = fresh
        self.flag = self.value = ""             # did_return, return_value: one pair for a function

    def block(self, stmts: list[ast.stmt], loop: Loop | None = None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in stmts:
            out += self.statement(s, loop)
            if isinstance(s, (ast.Break, ast.Continue, ast.Return)):
                break                   # what follows is never reached
        return out

    def statement(self, s: ast.stmt, loop: Loop | None) -> list[ast.stmt]:
        if isinstance(s, INNER):
            return [s]
        if isinstance(s, (ast.For, ast.While)):
            return self.loop(s, loop)
        if loop is not None and isinstance(s, (ast.Break, ast.Continue, ast.Return)):
            return self.leave(s, loop)
        for name in ("body", "orelse", "finalbody"):
            if hasattr(s, name):
                setattr(s, name, self.block(getattr(s, name), loop))
        for inner in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            inner.body = self.block(inner.body, loop)
        return [s]

    def leave(self, s: ast.stmt, loop: Loop) -> list[ast.stmt]:
        """What stands for `break`, `continue` or `return` in the body of a loop: a `return` out of the body, and before
        it what is to be known behind the loop.  `break` sets the flag `loop.stop`; `return` keeps the value, sets
        `self.flag` and ends the loop, too.  (A `return` of the variable `self.value` goes on from a loop inside, where
        both have been set.)  Notes in `loop` what it needs from now on: `stops`, `returns`.
        """
        out: list[ast.stmt] = []
        if isinstance(s, ast.Return):
            loop.returns = True
            value = s.value or ast.copy_location(ast.Constant(None), s)
            if not (isinstance(value, ast.Name) and value.id == self.value):     # on from an inner loop
                out = [assign(self.value_name(), value, s), assign(self.flag, True, s)]
        if not isinstance(s, ast.Continue):
            loop.stops = True
            out.append(assign(loop.stop, True, s))
        return [*out, ast.copy_location(ast.Return(None), s)]

    def value_name(self) -> str:
        if not self.value:
            self.flag, self.value = self.fresh("did_return"), self.fresh("return_value")
        return self.value

    def loop(self, s: ast.For | ast.While, outer: Loop | None) -> list[ast.stmt]:
        loop = Loop(self.fresh("did_break"))
        s.body = self.block(s.body, loop)
        orelse, s.orelse = self.block(s.orelse, outer), []
        s.stop = loop.stop if loop.stops else None          # type: ignore[union-attr]
        out: list[ast.stmt] = [s]
        if loop.stops:
            out.insert(0, assign(loop.stop, False, s))
        if loop.returns:
            out.insert(0, assign(self.flag, False, s))
            leave = self.statement(ast.copy_location(ast.Return(load(self.value, s)), s), outer)
            out.append(ast.copy_location(ast.If(load(self.flag, s), leave, []), s))
        if orelse and loop.stops:
            out.append(ast.copy_location(ast.If(call("Not", load(loop.stop, s)), orelse, []), orelse[0]))
        else:
            out += orelse
        return out
