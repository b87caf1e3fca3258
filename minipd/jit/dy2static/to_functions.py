"""`if`, `while` and `for` become calls: their blocks are functions that share the variables of the function around.

    if x > 0:                               y: 'variable'
        y = x               becomes
    else:                                   def if_true_0():
        y = -x                                  nonlocal y
                                                y = x
                                            def if_false_0():
                                                nonlocal y
                                                y = -x
                                            _jst.If(x > 0, if_true_0, if_false_0, ('y',))

The converter gets the names of what the blocks may change, and finds the variables in the closures of the functions.
For a condition of Python's it calls one of them, and that is all.
"""

from __future__ import annotations

import ast
from typing import Any

from minipd.jit.dy2static.nodes import at, call, load
from minipd.jit.dy2static.scopes import INNER, Fresh, bound, declared, own_nodes, stored, surely_read

__all__: list[str] = []


class ToFunctions:
    """globals, nonlocals: names of the function that belong to the module, or to functions around it.  owner: the class
    that gives private names their prefix."""

    def __init__(self, fresh: Fresh, body: list[ast.stmt], parameters: list[str], owner: str | None):
        self.fresh, self.owner = fresh, owner
        self.globals, self.nonlocals = declared(body, ast.Global), declared(body, ast.Nonlocal)
        self.parameters = parameters
        self.rests: dict[str, list[str]] = {}   # what the functions of `early_return` change
        self.shared: dict[str, None] = {}       # local variables that parts share

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of the user's function."""
        body = self.block(body)
        at_start = 1 if ast.get_docstring(ast.Module(body, []), clean=False) is not None else 0
        missing = [n for n in self.shared if n not in self.parameters]
        declarations: list[ast.stmt] = [
            at(ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant("variable"), None, 1), body[0]) for n in missing]
        for kind, names in ((ast.Global, self.globals), (ast.Nonlocal, self.nonlocals)):
            if names:
                declarations.append(at(kind(sorted(names)), body[0]))
        return body[:at_start] + declarations + body[at_start:]

    def block(self, stmts: list[ast.stmt], in_loop: bool = False) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(stmts):
            if isinstance(s, (ast.For, ast.While)):
                s.read = surely_read(stmts[i + 1:])         # type: ignore[union-attr]
            out += self.statement(s, in_loop)
        return out or [ast.Pass()]

    def statement(self, s: Any, in_loop: bool) -> list[ast.stmt]:
        if isinstance(s, ast.FunctionDef) and getattr(s, "part", False):
            self.rests[s.name] = self.changed(s.body)
            return [self.part(s.name, s.body, in_loop)]
        if isinstance(s, INNER):
            return [s]              # type: ignore[list-item]  # a lambda is no statement
        if isinstance(s, ast.AnnAssign) and s.simple:       # an annotation makes a name local, which parts must not
            return [ast.copy_location(ast.Assign([s.target], s.value), s)] if s.value else [ast.copy_location(
                ast.Pass(), s)]
        if isinstance(s, (ast.Global, ast.Nonlocal)):       # stand at the top of the function, and of parts
            return [ast.copy_location(ast.Pass(), s)]
        if isinstance(s, ast.If) and not getattr(s, "stays", False):
            return self.branch(s, in_loop)
        if isinstance(s, ast.While):
            return self.while_loop(s)
        if isinstance(s, ast.For):
            return self.for_loop(s)
        for holder in (s, *getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                if getattr(holder, name, None):
                    setattr(holder, name, self.block(getattr(holder, name), in_loop))
        return [s]

    # ----------------------------------------------------------------------------------------- three statements
    def branch(self, s: Any, in_loop: bool) -> list[ast.stmt]:
        returns = getattr(s, "returns", False)
        names = self.changed([*s.body, *s.orelse])
        local: list[str] = []
        if returns and not in_loop:             # nothing of this function comes after it, to look at its variables
            local = [n for n in names if n.isidentifier() and n not in self.nonlocals | self.globals]
            names = [n for n in names if n not in local]
        parts = [self.part(self.fresh("if_true"), s.body, in_loop)]
        if s.orelse:
            parts.append(self.part(self.fresh("if_false"), s.orelse, in_loop))
        functions = [load(p.name, s) for p in parts]
        call_ = call("If", s.test, *functions, *([] if s.orelse else [at(ast.Constant(None), s)]), self.tuple(names, s),
                     *([self.tuple(local, s)] if local else []), place=s)
        return [*parts, at(ast.Return(call_) if returns else ast.Expr(call_), s)]

    def while_loop(self, s: Any) -> list[ast.stmt]:
        names = self.changed([s.test, *s.body])
        test = self.part(self.fresh("while_test"), [at(ast.Return(s.test), s.test)], True)
        body = self.part(self.fresh("while_body"), s.body, True)
        return [test, body, self.loop("While", load(test.name, s), body, names, s)]

    def for_loop(self, s: Any) -> list[ast.stmt]:
        item = self.fresh("item")
        take = at(ast.Assign([s.target], ast.Name(item, ast.Load())), s.target)
        names = self.changed([take, *s.body])
        body = self.part(self.fresh("for_body"), [take, *s.body], True)
        body.args.args = [at(ast.arg(item), s.target)]
        return [body, self.loop("For", s.iter, body, names, s)]

    def loop(self, name: str, first: ast.expr, body: ast.FunctionDef, names: list[str], s: Any) -> ast.stmt:
        read = [n for n in names if n in s.read]
        more = [at(ast.Constant(s.stop), s)] if s.stop or read else []
        more += [self.tuple(read, s)] if read else []
        return at(ast.Expr(call(name, first, load(body.name, s), self.tuple(names, s), *more, place=s)), s)

    # ---------------------------------------------------------------------------------------------------- parts
    def part(self, name: str, stmts: list[ast.stmt], in_loop: bool) -> ast.FunctionDef:
        """A block as a function."""
        names = bound(stmts)
        body = self.block(stmts, in_loop)
        for kind, group in ((ast.Global, [n for n in names if n in self.globals]),
                            (ast.Nonlocal, [n for n in names if n not in self.globals])):
            if group:
                body.insert(0, at(kind(group), stmts[0]))
        self.shared |= dict.fromkeys(n for n in names if n not in self.globals | self.nonlocals)
        part = ast.FunctionDef(name, ast.arguments([], [], None, [], [], None, []), body or [ast.Pass()], [])
        part.part = True            # type: ignore[attr-defined]
        return at(part, stmts[0])

    def changed(self, nodes: list[Any]) -> list[str]:
        """What these blocks may change: variables, attributes, contents."""
        called = [n.id for n in own_nodes(nodes) if isinstance(n, ast.Name) and n.id in self.rests]
        return list(dict.fromkeys([*bound(nodes), *stored(nodes), *(c for name in called for c in self.rests[name])]))

    def tuple(self, names: list[str], place: ast.AST) -> ast.expr:
        stored = [".".join(map(self.mangled, n.split("."))) for n in names]
        return at(ast.Tuple([ast.Constant(n) for n in stored], ast.Load()), place)

    def mangled(self, name: str) -> str:
        """The name as Python stores it."""
        private = self.owner and name.startswith("__") and not name.removesuffix("[]").endswith("__")
        return f"_{str(self.owner).lstrip('_')}{name}" if private else name
