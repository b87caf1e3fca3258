"""The blocks of a nest go into one, as deep as they have loops in common."""

import numpy as np

from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups
from minipd.cinn.ir.ast import Alloc, For
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.walk import statements
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import IRSchedule, ScheduleConfig, ScheduleError, schedule
from minipd.cinn.schedule.tactics.base import Group
from minipd.cinn.schedule.tactics.compute_at import ComputeAt
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tools.course.checking import check

ROW, OTHER = ("rows", "i"), ("rows", "k")


def along(number):
    """The loop along a row in the pass of that number."""
    return (number, ("j",), "j")


class Recorder:
    """Stands for an IRSchedule: writes down what it is asked for.  refused: which blocks may not move."""

    def __init__(self, refused=()):
        self.asked, self.refused = [], refused

    def simple_compute_at(self, block, loop):
        self.asked.append((block, loop))
        if block in self.refused:
            raise ScheduleError(f"simple_compute_at({block}, {loop}): no")


def applied(want, order, on, refused=()):
    """order: for each nest, its blocks, as name -> keys; each loop is named after its letter and the block."""
    paths = {name: [(key, f"{key[-1]}_{name}") for key in keys] for nest in order for name, keys in nest.items()}
    said = "; ".join(f"{name} in {', '.join(loop for _, loop in path) or 'no loop'}" for name, path in paths.items())
    group = Group(None, [list(nest) for nest in order], paths)
    s = Recorder(refused)

    def got():
        ComputeAt().apply(s, group, ScheduleConfig())
        return {"asked": s.asked, "loops": {name: [loop for _, loop in group.paths[name]] for name in paths}}
    check(want, got, f"{on}: {said}")


def test_one_loop_in_common():
    applied({"asked": [("b", "i_a")], "loops": {"a": ["i_a", "j_a"], "b": ["i_a", "j_b"]}},
            [{"a": [ROW, along(0)], "b": [ROW, along(1)]}], "the rows are one loop, the passes are two")


def test_two_loops_in_common():
    applied({"asked": [("b", "j_a")], "loops": {"a": ["i_a", "j_a"], "b": ["i_a", "j_a"]}},
            [{"a": [ROW, along(0)], "b": [ROW, along(0)]}], "one pass")


def test_nothing_in_common():
    applied({"asked": [], "loops": {"a": ["i_a"], "b": ["k_b"]}}, [{"a": [ROW], "b": [OTHER]}], "different rows")


def test_only_from_outside():
    applied({"asked": [], "loops": {"a": ["i_a", "j_a"], "b": ["k_b", "j_b"]}},
            [{"a": [ROW, along(0)], "b": [OTHER, along(0)]}], "only the inner loops would be one")


def test_the_one_before():
    """c goes to the loops around b, of which the outer one is a's by now."""
    applied({"asked": [("b", "i_a"), ("c", "j_b")],
             "loops": {"a": ["i_a"], "b": ["i_a", "j_b"], "c": ["i_a", "j_b"]}},
            [{"a": [ROW], "b": [ROW, along(0)], "c": [ROW, along(0)]}], "a start, and a pass of two")


def test_one_is_refused():
    applied({"asked": [("b", "i_a"), ("c", "i_b")], "loops": {"a": ["i_a"], "b": ["i_b"], "c": ["i_b"]}},
            [{"a": [ROW], "b": [ROW], "c": [ROW]}], "b may not move, and c goes to b", refused=("b",))


def test_nests_stay_apart():
    applied({"asked": [], "loops": {"a": ["i_a"], "b": ["i_b"]}}, [{"a": [ROW]}, {"b": [ROW]}], "two nests")


def test_no_loop_at_all():
    applied({"asked": [], "loops": {"a": [], "b": ["i_b"], "c": []}}, [{"a": [], "b": [ROW], "c": []}],
            "blocks without loops")


def lowered(f, *shapes):
    program = trace(f, *(InputSpec(list(s), "float64", f"x{i}") for i, s in enumerate(shapes))).program
    prepare(program)
    group, = build_groups(program)
    return lower(group)


def target(f, *shapes):
    function = lowered(f, *shapes)
    blocks = schedule(function).function
    flat = finalize(blocks)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in shapes]
    before, after = np.empty(shapes[0]), np.empty(shapes[0])
    interpret(function, arrays, [before])
    interpret(flat, arrays, [after])
    check(before, after, "the result, before and after the schedule")
    inside = list(statements(flat.body))
    return {"nests": len(IRSchedule(blocks).get_root_block()), "loops": sum(isinstance(x, For) for x in inside),
            "arrays in between": sum(isinstance(x, Alloc) for x in inside)}


def norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def test_what_it_is_for():
    """Where rows and passes are one nest, each value in between is a number, and no array."""
    check({"nests": 1, "loops": 3, "arrays in between": 0}, lambda: target(norm, (4, 6), (6,)),
          "an RMSNorm of f64[4, 6]: one loop over rows, two passes over each")
    check({"nests": 1, "loops": 4, "arrays in between": 0}, lambda: target(F.softmax, (4, 6)),
          "a softmax of f64[4, 6]: one loop over rows, three passes over each")
