"""Kernel selection, as data and as text."""

import re

import numpy as np

from minipd.executor.kernel_dialect import kernel_key, kernel_text
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.ops.broadcast import expand_as
from minipd.ops.embedding import embedding

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def kernels(program):
    """Operator -> (dtype of its kernel, memory of its result)."""
    found = re.findall(r'dtype:(\w+)>,kernel_name:"(\w+)",(?:memory:"(\w+)")?', kernel_text(program))
    return {name: (dtype, memory) for dtype, name, memory in found}


def test_the_key_operand_selects():
    program = trace(lambda ids, table: embedding(ids, table), Meta((2,), I64), Meta((3, 4), F32)).program
    op = next(op for op in program.walk() if op.name() == "pd_op.embedding")
    assert str(kernel_key(op)) == "<backend:CPU|layout:NCHW|dtype:float32>"


def test_where_results_live():
    def f(x, y):
        h = (x + y).exp()
        return expand_as(h.reshape([-1]).sum(), h) * 2.0
    assert kernels(trace(f, Meta((2, 3), F32), Meta((2, 3), F32)).program) == {
        "data": ("float32", ""), "add": ("float32", "arena"), "exp": ("float32", "arena"),
        "reshape": ("float32", "view"), "sum": ("float32", "arena"), "expand_as": ("float32", "view"),
        "full": ("float32", "constant"), "multiply": ("float32", "own"), "full_int_array": ("int64", "")}


def test_updates_write_over_state():
    program = Program()
    build = Builder(program.global_block())
    w, g = build.parameter("w", (2,), F32), build.data("g", (2,), F32)
    rate, skip = build.data("rate", (), F32), build.data("skip", (), np.dtype(bool))
    new, = build.call(ROWS["sgd"], (w, g, rate, skip), {})
    build.set_parameter("w", new)
    assert kernels(program)["sgd"] == ("float32", "state")
