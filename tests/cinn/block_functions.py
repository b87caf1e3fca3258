"""Random functions in block form, over int64, so that sums are the same in every order; and random primitives."""

from __future__ import annotations

import numpy as np

from minipd.cinn.ir.ast import (
    GPU_AXES,
    INT64,
    Alloc,
    Dim,
    For,
    Function,
    IfThenElse,
    IterVar,
    Let,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Seq,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, const, identity, index
from minipd.cinn.ir.interpreter import interpret

AXES = "ijk"


class RandomFunction:
    """A function of up to `most` operators over the axes i, j, k, with arrays that are transposed, repeated along axes
    that they lack, read backwards, folded, and joined of pieces.

    function, inputs, shapes (of the outputs), want (the outputs).
    """

    def __init__(self, rng, most=6):
        self.rng = rng
        self.sizes = {a: rng.randint(1, 3) for a in AXES}
        known = rng.random() < 0.5
        self.extents = {a: index(n) if known else Dim("x0", k) for k, (a, n) in enumerate(self.sizes.items())}
        self.axes = {"x0": "ijk", "x1": rng.choice(["ij", "ji"]), "x2": "k"}
        self.allocs, self.nests = [], []
        for _ in range(rng.randint(1, most)):
            self.operator()
        made = [n for n in self.axes if n.startswith("t")]
        wanted = dict.fromkeys([made[-1], rng.choice(made)])
        params = [Param(x, INT64, len(self.axes[x])) for x in ("x0", "x1", "x2")]
        self.shapes = []
        for n, t in enumerate(wanted):
            own = self.axes[t]
            params.append(Param(f"y{n}", INT64, len(own), output=True))
            self.shapes.append(tuple(self.sizes[a] for a in own))
            self.block(f"y{n}", Store(f"y{n}", tuple(Var(f"v{a}") for a in own), self.element(t, own)), own)
        self.function = Function("random", tuple(params), Seq((*self.allocs, *self.nests)))
        numbers = np.random.default_rng(rng.randint(0, 9))
        self.inputs = [numbers.integers(-4, 5, tuple(self.sizes[a] for a in self.axes[x])) for x in ("x0", "x1", "x2")]
        self.want = self.run(self.function)

    def run(self, function, shuffle=None):
        outputs = [np.empty(s, np.int64) for s in self.shapes]
        interpret(function, self.inputs, outputs, shuffle)
        return outputs

    # ---------------------------------------------------------------------------------------------------- making
    def new(self, axes):
        name = f"t{len(self.allocs)}"
        self.axes[name] = "".join(axes)
        self.allocs.append(Alloc(name, tuple(self.extents[a] for a in axes), INT64))
        return name, tuple(Var(f"v{a}") for a in axes)

    def block(self, name, body, axes, folded=""):
        iter_vars = tuple(IterVar(f"v{a}", self.extents[a], "R" if a in folded else "S") for a in axes)
        nest = ScheduleBlock(name, iter_vars, tuple(Var(f"{a}_{name}") for a in axes), body)
        for a in reversed(axes):
            nest = For(f"{a}_{name}", self.extents[a], nest)
        self.nests.append(nest)

    def element(self, name, axes):
        """An element of a value at the position along `axes`, in some way; other axes are read at their start."""
        at = []
        for a in self.axes[name]:
            near = [b for b in axes if self.sizes[b] == self.sizes[a] and self.extents[b] == self.extents[a]]
            way = self.rng.choice(["own"] * 8 + ["back", "start", "other"])
            if a not in axes or way == "start":
                at.append(index(0))
            elif way == "back":
                at.append(binary("sub", binary("sub", self.extents[a], 1), Var(f"v{a}")))
            elif way == "other" and near:
                at.append(Var(f"v{self.rng.choice(near)}"))
            else:
                at.append(Var(f"v{a}"))
        return Load(name, tuple(at), INT64)

    def operator(self):
        rng = self.rng
        names = list(self.axes)
        a, b = rng.choice(names[-3:]), rng.choice(names)
        axes = list(dict.fromkeys(self.axes[a] + self.axes[b]))
        if rng.randint(0, 3) == 0:
            axes = rng.sample(axes, len(axes))
        kind = rng.choice(["binary", "binary", "binary", "fold", "fold", "lets", "pieces"])
        if kind == "fold" and axes:
            folded = {rng.choice(axes) for _ in range(rng.randint(1, 3))}
            op = rng.choice(["add", "add", "max", "min", "mul"])
            value = self.element(a, axes)
            kept = [x for x in axes if x not in folded]
            name, at = self.new(kept)
            self.block(f"{name}__reduce_init", Store(name, at, identity(op, INT64)), kept)
            self.block(name, Reduce(name, at, op, value), axes, folded)
            return
        x, y = self.element(a, axes), self.element(b, axes)
        name, at = self.new(axes)
        if kind == "lets":
            c = Var("c", INT64)
            body = Seq((Let("c", binary("mul", x, 3)), Store(name, at, binary("sub", binary("mul", c, y), c))))
        elif kind == "pieces" and axes:
            cond = binary("lt", Var(f"v{rng.choice(axes)}"), rng.randint(0, 3))
            body = IfThenElse(cond, Store(name, at, x), Store(name, at, binary("add", y, const(1, INT64))))
        else:
            body = Store(name, at, binary(rng.choice(["add", "sub", "mul", "max"]), x, y))
        self.block(name, body, axes)


#: how often each primitive is tried
WEIGHTS = {"split": 3, "split_evenly": 2, "fuse": 2, "reorder": 3, "add_unit_loop": 1, "parallel": 2, "vectorize": 2,
           "unroll": 1, "bind": 1, "compute_inline": 3, "reverse_compute_inline": 3, "simple_compute_at": 12,
           "rfactor": 2, "set_buffer": 2, "compute_at": 5, "reverse_compute_at": 5, "cache_read": 2, "cache_write": 2}


def arguments(rng, s, primitive):
    """Arguments that may fit a primitive; None where there are none."""
    blocks = s.get_all_blocks()
    block = rng.choice(blocks)
    own = s.get_loops(block)
    everywhere = sorted({loop for b in blocks for loop in s.get_loops(b)})
    if not own or not everywhere:
        return None
    loop = rng.choice(own)
    match primitive:
        case "split":
            return (loop, rng.choice([(-1, 2), (-1, 3), (2, -1), (2, 2), (-1, 2, 2), (4, 1)]))
        case "split_evenly":
            return (loop, rng.randint(1, 3), rng.randint(1, 2), rng.choice([None, 2, 3]))
        case "fuse":
            at = own.index(loop)
            return (tuple(own[at:at + rng.randint(2, 3)]),)
        case "reorder":
            return (tuple(rng.sample(own, len(own))),)
        case "parallel" | "vectorize" | "unroll" | "rfactor":
            return (loop,)
        case "bind":
            return (loop, rng.choice(GPU_AXES[::3]))
        case "set_buffer":
            return (block, rng.choice(["y0", "y1", "global", "shared", "local"]))
        case "simple_compute_at" | "compute_at" | "reverse_compute_at":
            return (block, rng.choice(everywhere))
        case "cache_read":
            return (block, rng.choice(["x0", "x1", "x2", "t0", "t1"]), "local")
        case "cache_write":
            return (block, "local")
    return (block,)
