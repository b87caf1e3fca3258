"""The loop IR as text, in the form of Paddle's documentation.

    # exp
    function kernel (x0: f32[:, :], y0: f32[:, :] out)
    {
      ScheduleBlock(root)
      {
        parallel for (i_0, 0, 8)
        {
          vectorize for (i_1, 0, 64)
          {
            ScheduleBlock(y0)
            {
              vi = axis.bind(i_0 * 64 + i_1)
              y0[vi] = exp(x0[vi]) * 2.0f
            }
          }
        }
      }
    }

`=` is a Let or a Store, `:=` an Init or an Alloc, `+=`, `*=`, `max=` and so on a Reduce or an Accumulate.  A block's
predicate stands in `where (...)`.  Unlike Paddle's, the text has no parentheses that precedence makes superfluous.
"""

from __future__ import annotations

import math

import numpy as np

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Call,
    Cast,
    Const,
    Dim,
    Expr,
    For,
    Function,
    IfThenElse,
    Init,
    Let,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Select,
    Seq,
    Stmt,
    Store,
    SyncThreads,
    Unary,
    Var,
)
from minipd.cinn.ir.operators import ATOM, BINARY, COMPARISON, NEGATION, UNARY
from minipd.cinn.ir.stmt import GPU_AXES, Annotations
from minipd.cinn.ir.walk import in_block_form
from minipd.framework import dtype as dtypes

__all__ = ["text"]

#: what stands in front of `for`, where it is not the kind
LOOP_WORDS = {"vector": "vectorize", **{axis: f"thread_bind[{axis}]" for axis in GPU_AXES}}
#: what stands in front of `=`, where it is not the operation
UPDATE_SIGNS = {"add": "+", "mul": "*"}


def dtype_text(dtype: np.dtype) -> str:
    return dtypes.of(dtype).short


def text(node: Function | Stmt | Expr) -> str:
    """A function, a statement or an expression as text.

    >>> from minipd.cinn.ir.build import binary, const
    >>> x = Load("x", (Var("i"),), np.dtype("float32"))
    >>> text(Store("y", (Var("i"),), binary("mul", binary("add", x, const(1, x.dtype)), x)))
    'y[i] = (x[i] + 1.0f) * x[i]'
    """
    if isinstance(node, Function):
        comment = [f"# {', '.join(node.comment)}"] if node.comment else []
        body = _lines(node.body, 1)
        if in_block_form(node.body):
            body = _braced("  ScheduleBlock(root)", _lines(node.body, 2), 1)
        signature = f"function {node.name} ({', '.join(map(_param, node.params))})"
        return "\n".join([*comment, *_braced(signature, body, 0)]) + "\n"
    if isinstance(node, Stmt):
        return "\n".join(_lines(node, 0))
    return _expr(node)


def _param(p: Param) -> str:
    axes = ", ".join(":" for _ in range(p.ndim))
    view = "" if p.view is None else f" view {_view(p.view)}"
    return f"{p.name}: {dtype_text(p.dtype)}[{axes}]{view}{' out' if p.output else ''}"


def _view(view: tuple[tuple[int | tuple[int, int], ...], ...]) -> str:
    def axis(a: int | tuple[int, int]) -> str:
        return str(a) if isinstance(a, int) else f"{a[0]}[{a[1]}]" if a[1] >= 0 else f"{a[0]}/{-a[1]}"
    return "[" + ", ".join("*".join(map(axis, axes)) or "-" for axes in view) + "]"


def _lines(s: Stmt, depth: int) -> list[str]:
    pad = "  " * depth
    match s:
        case Seq(stmts=stmts):
            return [line for x in stmts for line in _lines(x, depth)]
        case For(var=var, extent=extent, body=body, kind=kind):
            head = f"{pad}{LOOP_WORDS.get(kind, kind)} for ({var}, 0, {_expr(extent)}){_attrs(' ', s.annotations)}"
            return _braced(head, _lines(body, depth + 1), depth)
        case IfThenElse(cond=cond, then=then, orelse=orelse):
            lines = _braced(f"{pad}if ({_expr(cond)})", _lines(then, depth + 1), depth)
            return lines if orelse is None else lines + _braced(f"{pad}else", _lines(orelse, depth + 1), depth)
        case ScheduleBlock(name=name):
            return _braced(f"{pad}ScheduleBlock({name})", _block(s, depth + 1), depth)
        case Store(buffer=buffer, index=index, value=value):
            return [f"{pad}{buffer}{_index(index)} = {_expr(value)}"]
        case Reduce(buffer=buffer, index=index, op=op, value=value):
            return [f"{pad}{buffer}{_index(index)} {UPDATE_SIGNS.get(op, op)}= {_expr(value)}"]
        case Let(name=name, value=value):
            return [f"{pad}{name} = {_expr(value)}"]
        case Init(name=name, value=value):
            return [f"{pad}{name} := {_expr(value)}"]
        case Accumulate(name=name, op=op, value=value):
            return [f"{pad}{name} {UPDATE_SIGNS.get(op, op)}= {_expr(value)}"]
        case Alloc(buffer=buffer, shape=shape, dtype=dtype, memory=memory):
            return [f"{pad}{buffer} := {memory} {dtype_text(dtype)}{_index(shape)}"]
        case SyncThreads():
            return [f"{pad}__syncthreads()"]
    raise AssertionError(s)


def _braced(head: str, body: list[str], depth: int) -> list[str]:
    pad = "  " * depth
    return [head, f"{pad}{{", *body, f"{pad}}}"]


def _block(s: ScheduleBlock, depth: int) -> list[str]:
    pad = "  " * depth
    lines = []
    if s.iter_vars:
        values = ", ".join(map(_expr, s.iter_values))
        lines.append(f"{pad}{', '.join(v.name for v in s.iter_vars)} = axis.bind({values})")
    if s.predicate is not None:
        lines.append(f"{pad}where ({_expr(s.predicate)})")
    if s.annotations:
        lines.append(_attrs(pad, s.annotations))
    return lines + _lines(s.body, depth)


def _attrs(before: str, annotations: Annotations) -> str:
    return f"{before}attrs({', '.join(f'{key}: {value}' for key, value in annotations)})" if annotations else ""


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
        case Call(name=name, args=args):
            return f"{name}({', '.join(map(_expr, args))})", ATOM
    raise AssertionError(e)


def _const(value: bool | int | float, dtype: np.dtype) -> tuple[str, int]:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if value < 0 else ''}{'nan' if math.isnan(value) else 'inf'}", NEGATION if value < 0 else ATOM
    if isinstance(value, float):
        out = f"{np.float32(value)!s}f" if dtype == np.float32 else repr(value)
    else:
        out = str(value)
    return out, NEGATION if out.startswith("-") else ATOM
