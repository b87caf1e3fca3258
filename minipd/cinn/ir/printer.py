"""The loop IR as text that reads like Python.

    # square, sum, rsqrt, multiply
    def rows(x0: f32[:, :], y0: f32[:, :] out):
        parallel for i in range(64):
            sum_1 := 0.0
            vector for j in range(288):
                square_0 = x0[i, j] * x0[i, j]
                sum_1 += square_0

`=` is a Let, `:=` an Init, `+=`, `max=`, `min=` an Accumulate.
"""

from __future__ import annotations

import math

import numpy as np

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Const,
    Dim,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Param,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    Var,
)
from minipd.cinn.ir.operators import ATOM, BINARY, COMPARISON, NEGATION, UNARY
from minipd.framework import dtype as dtypes

__all__ = ["text"]

def dtype_text(dtype: np.dtype) -> str:
    return dtypes.of(dtype).short


def text(node: Function | Stmt | Expr) -> str:
    """A function, a statement or an expression as text.

    >>> from minipd.cinn.ir.build import binary, const
    >>> x = Load("x", (Var("i"),), np.dtype("float32"))
    >>> text(Store("y", (Var("i"),), binary("mul", binary("add", x, const(1, x.dtype)), x)))
    'y[i] = (x[i] + 1.0) * x[i]'
    """
    if isinstance(node, Function):
        comment = [f"# {', '.join(node.comment)}"] if node.comment else []
        signature = f"def {node.name}({', '.join(map(_param, node.params))}):"
        return "\n".join([*comment, signature, *_lines(node.body, 1)]) + "\n"
    if isinstance(node, Stmt):
        return "\n".join(_lines(node, 0))
    return _expr(node)


def _param(p: Param) -> str:
    axes = ", ".join(":" for _ in range(p.ndim))
    view = "" if p.view is None else f" view {_view(p.view)}"
    return f"{p.name}: {dtype_text(p.dtype)}[{axes}]{view}{' out' if p.output else ''}"


def _view(view: tuple[tuple[int, ...], ...]) -> str:
    return "[" + ", ".join("*".join(map(str, axes)) or "-" for axes in view) + "]"


def _lines(s: Stmt, depth: int) -> list[str]:
    pad = "    " * depth
    match s:
        case Seq(stmts=stmts):
            return [line for x in stmts for line in _lines(x, depth)] or [f"{pad}pass"]
        case For(var=var, extent=extent, body=body, kind=kind):
            word = "" if kind == "serial" else f"{kind} "
            return [f"{pad}{word}for {var} in range({_expr(extent)}):", *_lines(body, depth + 1)]
        case Store(buffer=buffer, index=index, value=value):
            return [f"{pad}{buffer}{_index(index)} = {_expr(value)}"]
        case Let(name=name, value=value):
            return [f"{pad}{name} = {_expr(value)}"]
        case Init(name=name, value=value):
            return [f"{pad}{name} := {_expr(value)}"]
        case Accumulate(name=name, op=op, value=value):
            return [f"{pad}{name} {'+' if op == 'add' else op}= {_expr(value)}"]
        case Alloc(buffer=buffer, shape=shape, dtype=dtype):
            return [f"{pad}{buffer} := local {dtype_text(dtype)}{_index(shape)}"]
    raise AssertionError(s)


def _index(index: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(_expr, index))}]" if index else "[()]"


def _expr(e: Expr, around: int = 0) -> str:
    """`around`: how strongly what stands around e binds; e gets parentheses if it binds less."""
    out, strength = _parts(e)
    return f"({out})" if strength < around else out


def _parts(e: Expr) -> tuple[str, int]:
    match e:
        case Const(value=value, dtype=dtype):
            return _const(value, dtype)
        case Var(name=name):
            return name, ATOM
        case Load(buffer=buffer, index=index):
            return f"{buffer}{_index(index)}", ATOM
        case Dim(param=param, axis=axis):
            return f"{param}.shape[{axis}]", ATOM
        case Unary(op=op, x=x):
            _, sign, strength, _ = UNARY[op]
            return (f"{sign}{_expr(x, strength)}" if sign else f"{op}({_expr(x)})"), strength
        case Binary(op=op, x=x, y=y) if BINARY[op].sign:
            _, sign, strength, _ = BINARY[op]
            # comparisons do not chain here, ** groups from the right: both sides of those need the parentheses
            left = strength + 1 if strength == COMPARISON or op == "pow" else strength
            return f"{_expr(x, left)} {sign} {_expr(y, strength + 1)}", strength
        case Binary(op=op, x=x, y=y):
            return f"{op}({_expr(x)}, {_expr(y)})", ATOM
        case Select(cond=cond, x=x, y=y):
            return f"select({_expr(cond)}, {_expr(x)}, {_expr(y)})", ATOM
        case Cast(x=x, dtype=dtype):
            return f"{dtype_text(dtype)}({_expr(x)})", ATOM
    raise AssertionError(e)


def _const(value: bool | int | float, dtype: np.dtype) -> tuple[str, int]:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if value < 0 else ''}{'nan' if math.isnan(value) else 'inf'}", NEGATION if value < 0 else ATOM
    if isinstance(value, float):
        out = str(np.float32(value)) if dtype == np.float32 else repr(value)
    else:
        out = str(value)
    return out, NEGATION if out.startswith("-") else ATOM
