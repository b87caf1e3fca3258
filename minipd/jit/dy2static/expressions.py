"""Expressions: calls, `and` / `or` / `not`, comparisons, `a if c else b`, `assert`; what is stored into.

    f(x)                    _jst.Call(f)(x)
    a and b                 _jst.And(a, lambda: b)
    0 < x < n               _jst.Compare(0, '<', lambda: x, '<', lambda: n)
    x in xs                 _jst.In(x, xs)
    a if c else b           _jst.IfExp(c, lambda: a, lambda: b)
    assert c, m             _jst.Assert(c, lambda: m)
    globals()["G"]          _jst.Item(globals(), "G")       (and `.get`, `in`; and of `vars(x)`, `x.__dict__`)
    type(x).a               _jst.Attribute(type(x), 'a')
    raise E(m)              raise _jst.Told(lambda: E(m))
    a.b = x                 _jst.Change(a, 'a.b').b = x
    xs[i] = x               _jst.Change(xs, 'xs[]')[i] = x
    xs += ys                _jst.Change(xs, 'xs[]'); xs += ys

What Python evaluates late, or not at all, is in a lambda.  An assignment expression inside would be the lambda's own:
such an expression stays as it is.
"""

from __future__ import annotations

import ast
from typing import Any

from minipd.jit.dy2static.nodes import at, call, load, thunk
from minipd.jit.dy2static.scopes import INNER, MUTATORS, dotted, is_part

__all__: list[str] = []

#: the operators by which a list, dict, set or array is changed in place
IN_PLACE = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def movable(*exprs: ast.expr) -> bool:
    """Whether these may go into a lambda."""
    return not any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await))
                   for e in exprs for n in ast.walk(e))


def is_call_of(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and (
        not node.keywords)


def is_namespace(node: ast.expr) -> bool:
    """Whether an expression gives the names of a module or an object: a dict that code reads by its keys."""
    return is_call_of(node, "globals", "vars") or isinstance(node, ast.Attribute) and node.attr == "__dict__"


class Expressions(ast.NodeTransformer):
    """The expressions of one function; inner functions have their own turn.

    me: the name of its first parameter, which `super()` means.  owner: the class that gives private names their prefix.
    """

    def __init__(self, me: str | None, owner: str | None):
        self.me, self.owner = me, owner

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, INNER) and not isinstance(node, ast.Lambda) and not is_part(node):
            return self.around(node)
        return super().visit(node)

    def around(self, node: Any) -> Any:
        """Of an inner function or class: what is evaluated out here."""
        if isinstance(node, ast.ClassDef):
            node.bases = [self.visit(b) for b in node.bases]
        else:
            node.args.defaults = [self.visit(d) for d in node.args.defaults]
            node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return node

    # ------------------------------------------------------------------------------------------------- calls
    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args and not node.keywords and self.me:
                node.args = [at(ast.Name("__class__", ast.Load()), node), at(ast.Name(self.me, ast.Load()), node)]
            return node
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr == "get" and is_namespace(f.value) and not node.keywords:
            return call("Get", self.namespace(f.value), *[self.visit(a) for a in node.args], place=node)
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr in MUTATORS and (name := dotted(f.value)):
            f.value = call("Change", f.value, at(ast.Constant(f"{name}[]"), f))
        if isinstance(f, ast.Attribute) and f.end_lineno is not None:       # where Python says that a method is called
            node.lineno, node.col_offset = f.end_lineno, max(0, (f.end_col_offset or 0) - len(f.attr))
        node.func = call("Call", f)
        return node

    def namespace(self, node: Any) -> ast.expr:
        """`globals()`, `vars(x)` or `x.__dict__`, of which one name is read."""
        if isinstance(node, ast.Call):
            node.args = [self.visit(a) for a in node.args]
        else:
            node.value = self.visit(node.value)
        return node

    # --------------------------------------------------------------------------------------------- truth values
    def test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth is asked."""
        if isinstance(node, ast.BoolOp):
            return self.bool_op(node, test=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.visit_UnaryOp(node)
        return self.visit(node)

    def bool_op(self, node: ast.BoolOp, test: bool = False) -> ast.expr:
        first, *others = [self.test(v) if test else self.visit(v) for v in node.values]
        if not movable(*others):
            node.values = [first, *others]
            return node
        name = "And" if isinstance(node.op, ast.And) else "Or"
        for other in others:
            first = call(name, first, thunk(other), keywords={"test": True} if test else None, place=node)
        return first

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.bool_op(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return call("Not", self.test(node.operand), place=node)
        return self.generic_visit(node)                                     # type: ignore[return-value]

    def visit_If(self, node: Any) -> Any:
        node.test = self.test(node.test)
        node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
        return node

    visit_While = visit_If

    def statements(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in stmts:
            new = self.visit(s)
            out += new if isinstance(new, list) else [new]
        return out

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test, body, orelse = self.test(node.test), self.visit(node.body), self.visit(node.orelse)
        if not movable(body, orelse):
            node.test, node.body, node.orelse = test, body, orelse
            return node
        return call("IfExp", test, thunk(body), thunk(orelse), place=node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = self.test(node.test)
        message = [self.visit(node.msg)] if node.msg else []
        if not movable(*message):
            node.test, node.msg = test, message[0]
            return node
        return at(ast.Expr(call("Assert", test, *map(thunk, message), place=node)), node)

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call) and movable(node.exc):
            node.exc = call("Told", thunk(node.exc), place=node)
        return node

    # ---------------------------------------------------------------------------------------------- comparisons
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        op = node.ops[0]
        if len(node.ops) == 1 and isinstance(op, (ast.In, ast.NotIn)) and is_namespace(node.comparators[0]):
            has = call("Has", self.visit(node.left), self.namespace(node.comparators[0]), place=node)
            return has if isinstance(op, ast.In) else at(ast.UnaryOp(ast.Not(), has), node)
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(op, (ast.In, ast.NotIn)):
                return node
            return call("In" if isinstance(op, ast.In) else "NotIn", node.left, node.comparators[0], place=node)
        if not movable(*node.comparators) or not all(type(o) in SIGNS for o in node.ops):
            return node
        rest: list[ast.expr] = []
        for o, right in zip(node.ops, node.comparators, strict=True):
            rest += [at(ast.Constant(SIGNS[type(o)]), right), thunk(right)]
        return call("Compare", node.left, *rest, place=node)

    # -------------------------------------------------------------------------------------- what is stored into
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = dotted(node) or f"(...).{node.attr}"
        if isinstance(node.ctx, ast.Load) and is_call_of(node.value, "type"):
            attr = at(ast.Constant(self.mangled(node.attr)), node)
            return call("Attribute", self.visit(node.value), attr, place=node)
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = call("Change", node.value, at(ast.Constant(self.mangled(name)), node))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = dotted(node.value) or "(...)"
        if isinstance(node.ctx, ast.Load) and is_namespace(node.value):
            return call("Item", self.namespace(node.value), self.visit(node.slice), place=node)
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = call("Change", node.value, at(ast.Constant(f"{name}[]"), node))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        self.generic_visit(node)
        if not name or isinstance(node.value, ast.Constant) or type(node.op) not in IN_PLACE:
            return node
        return [at(ast.Expr(call("Change", load(name, node), at(ast.Constant(f"{name}[]"), node))), node), node]

    def mangled(self, name: str) -> str:
        """A chain of attributes, the last as Python stores it."""
        first, dot, last = name.rpartition(".")
        private = self.owner and last.startswith("__") and not last.endswith("__")
        return f"{first}{dot}_{str(self.owner).lstrip('_')}{last}" if private else name

    # -------------------------------------------------------------------------------------------- comprehensions
    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.visit(node.iter)
        node.ifs = [self.test(i) for i in node.ifs]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        if not movable(node.body):          # a generator, or with names of its own
            return node
        node.body = Expressions(None, self.owner).visit(node.body)
        return node


