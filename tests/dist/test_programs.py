"""What backward, dead code elimination and the executor do with the rows of distribution."""

import numpy as np
import pytest

from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.traced import trace
from minipd.static import InputSpec


def test_gradients_can_be_pinned():
    """Every gradient of a result is matched to its primal before it enters a rule; those of inputs are not."""
    traced = trace(lambda x: (x.exp() * x).sum(), InputSpec([2], name="x", stop_gradient=False))
    g, = append_backward(traced.program, traced.output_values, traced.input_values, pin=True)
    Builder(traced.program.global_block()).output("g", g)
    matches = [op for op in traced.program.walk() if op.name() == "dist_op.match"]
    assert [op.operand_source(1).get_defining_op().name() for op in matches] == [
        "pd_op.sum", "pd_op.multiply", "pd_op.exp"]
    assert Executor(traced.program).run({"x": np.zeros(2, np.float32)})["g"].tolist() == [1, 1]


@pytest.fixture
def reduced():
    """y = all_reduce(x), which nothing reads."""
    program = Program()
    build = Builder(program.global_block())
    build.call(ROWS["all_reduce"], (build.data("x", (2,), "float32"),), {"group": (0, 1), "op": "sum"})
    return program


def test_collectives_stay(reduced):
    """A rank that leaves one out leaves the others waiting."""
    assert remove_dead_ops(reduced) == 0


def test_collectives_need_a_communicator(reduced):
    with pytest.raises(RuntimeError, match="all_reduce: this rank has no communicator"):
        Executor(reduced).run({"x": np.zeros(2, np.float32)})
