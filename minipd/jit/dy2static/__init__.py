"""Control flow of Python for tensors: functions are rewritten before they are traced.

A trace runs a function once, so a branch on a tensor, whose value no trace knows, has to be seen as one.  `rewrite`
changes the syntax tree of a function so that every `if`, loop and truth value goes through a converter (`operators`),
which decides when it is called: a Python value, or an eager tensor, is Python's own affair, exactly as it was; a traced
tensor becomes a `pd_op.if` or a `pd_op.while`.

    source, scopes, nodes                   reading, asking and making pieces of syntax trees
    expressions, loop_exits, early_return, to_functions, rewrite            the passes, and their order
    branches, loops, traced_loop, indexed, logic, asserts, builtins, calls  the converters
    reading                                 what is read by a name that only the trace knows; clocks and files
    variables, changes, inside              what a block changes, as its code says, and as it happens; what it has made
    merging, reasons                        two values as one; variables without a value
    levels                                  what Paddle prints of all this

What stands in rewritten code (`print(f.code)`):

    _jst.If(test, if_true_0, if_false_0, ("y",))        `if`; the blocks have become functions, which may change y
    _jst.While(while_test_0, while_body_0, ("i",))      `while`
    _jst.For(items, for_body_0, ("s",), "did_break_0")  `for`, which ends when did_break_0 is true
    _jst.Call(f)(x)                                     `f(x)`, with f rewritten
    _jst.And, Or, Not, IfExp, Compare, In, Assert       `and`, `or`, `not`, `a if c else b`, `a < b < c`, `in`, `assert`
    _jst.Told(lambda: e)                                `raise e`, whose message may tell of tensors
    _jst.Item(globals(), "G"), Get, Has, Attribute      `globals()["G"]`, `.get`, `in`; `type(x).a`
    _jst.Change(a, "a.b").b = x                         `a.b = x`: a branch or a loop around hands on what it changes
    _jst.Rebind(("n",), lambda: (n,))                   the function binds n, which is not its own
    y: "variable"                                       y is one of the function, and its parts share it
    did_break_0, did_return_0, return_value_0, rest_of_if_0     see `loop_exits` and `early_return`
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from minipd.jit.dy2static.calls import Call, ignore_module, rewritten_layers
from minipd.jit.dy2static.levels import set_code_level, set_verbosity
from minipd.jit.dy2static.reasons import explained
from minipd.jit.dy2static.rewrite import text_of
from minipd.nn.layer import Layer

__all__ = ["explained", "ignore_module", "rewritten_layers", "set_code_level", "set_verbosity", "text_of", "traceable",
           "transformed"]


def transformed(function: Callable) -> Callable:
    """The function with its control flow open to tensors; itself where there is nothing to rewrite.

    It has the same closure cells, globals, defaults and names, and its lines are those of the user's file.

    >>> def f(x):
    ...     return 1 if x > 0 else 2
    >>> transformed(f)(3)
    1
    """
    return Call(function)


def traceable(function: Callable) -> Callable:
    """The transformed function, as it is to be traced: an error about a variable without a value says why.  Of a
    layer's `forward`, the layers inside are transformed too."""
    inner, owner = transformed(function), getattr(function, "__self__", None)

    def traced(*args: Any, **kwargs: Any) -> Any:
        with explained(), rewritten_layers(owner) if isinstance(owner, Layer) else nullcontext():
            return inner(*args, **kwargs)
    return traced
