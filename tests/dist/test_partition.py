"""Partition: the programs of the ranks compute what the global program says, and communicate what eager ranks do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.autograd.engine import grad
from minipd.dist.api import dtensor_from_local, shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.static.rank_program import RankProgram
from minipd.executor import Executor
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.nn import Layer, Linear
from minipd.nn import functional as F
from minipd.optimizer import SGD
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import EagerStep, shard_model
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop
from tests.dist.every_rule import cut
from tests.dist.programs import completed, run_on
from tests.dist.ranks import on_mesh
from tests.dist.test_rows_on_mesh import PLACED, calls, close

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)
MESH = parse_mesh("dp=2,tp=2")
F64 = np.dtype("float64")
RNG = np.random.default_rng(8)
X, W = RNG.normal(size=(6, 4)), RNG.normal(size=(4, 8))


def specs(**arrays):
    return [InputSpec(a.shape, str(a.dtype), n, stop_gradient=False) for n, a in arrays.items()]


def outputs(program, values):
    for i, v in enumerate(values):
        Builder(program.global_block()).output(f"g{i}", v)


# ------------------------------------------------------------------------------------------------- by hand
def test_the_program_of_a_rank():
    """x: f64[6_dp, 4_tp] @ w: f64[4_tp, 8] is Partial over tp; tanh resolves it.  Shapes are local, names stay."""
    program = trace(lambda x, w: x.matmul(w).tanh(), *specs(x=X, w=W)).program
    whole = completed(program, MESH, {"x": [S0, S1], "w": [R, S0]})
    before = whole.to_string("exact")
    local = partition(whole, MESH, 3)
    assert whole.to_string("exact") == before
    assert [op.name() for op in local.global_block()] == [
        "pd_op.data", "pd_op.data", "pd_op.matmul", "pd_op.all_reduce", "pd_op.tanh", "builtin.shadow_output"]
    assert [op.result(0).shape for op in local.global_block().ops[:3]] == [(3, 2), (2, 8), (3, 8)]
    reduce = next(op for op in local.walk() if op.name() == "pd_op.all_reduce")
    assert (reduce.attributes["group"].value, reduce.attributes["op"].value) == ((2, 3), "sum")
    assert parse(local.to_string("exact")) == local


def test_ranks_together_compute_the_global_program():
    program = trace(lambda x, w: F.softmax(x.matmul(w), axis=1), *specs(x=X, w=W)).program
    for placed in ({"x": [S0, R], "w": [R, S1]}, {"x": [S0, S1], "w": [R, S0]}, {"x": [S0, S0], "w": [S1, S1]}, {}):
        ran = run_on("dp=2,tp=2", program.clone(), placed, {"x": X, "w": W})
        e = np.exp(X @ W)
        np.testing.assert_allclose(ran.outputs["output_0"], e / e.sum(1, keepdims=True), rtol=1e-12)


def test_an_output_that_somebody_resolved():
    """It keeps the placement that the program gives it, Partial here: one rank has the value, the others nothing."""
    def two(x):
        total = x.sum(axis=0)
        return total, total.exp()
    program = trace(two, *specs(x=X)).program
    ran = run_on("dp=2,tp=2", program, {"x": [S0, R]}, {"x": X})
    np.testing.assert_allclose(ran.outputs["output_0"], X.sum(0))
    np.testing.assert_allclose(ran.outputs["output_1"], np.exp(X.sum(0)))
    assert all(c == {"all_reduce": 1} for c in ran.collectives)


@pytest.mark.parametrize("batch", [2, 6, 10])
def test_a_symbolic_batch_over_dp(batch):
    """One program for every batch that splits evenly."""
    program = trace(lambda x, w: (F.relu(x.matmul(w)).mean(axis=1), x.mean()), InputSpec(["S0", 4], "float64", "x"),
                    *specs(w=W)).program
    x = RNG.normal(size=(batch, 4))
    ran = run_on("dp=2,tp=2", program, {"x": [S0, R], "w": [R, S1]}, {"x": x, "w": W})
    np.testing.assert_allclose(ran.outputs["output_0"], np.maximum(x @ W, 0).mean(1))
    np.testing.assert_allclose(ran.outputs["output_1"], x.mean())
    assert 'shape:shape<(S0/2)x4>' in ran.locals[0].replace(" ", "") or "(S0/2)x4xf64" in ran.locals[0]


def test_a_symbolic_batch_that_does_not_split():
    """Found where the global size is known: not by a rank, to which 3 rows are half of 6."""
    def run(mesh):
        program = Program()
        tracer = Trace(program)
        with using(ground=tracer, middle=None), program.constraints.collect():
            spec = trace_input(tracer)
            tracer.build.output("y", spec.sum(axis=1).payload)
        ranked = RankProgram(program, tracer, mesh, {}, {"x": [S0]})
        good = ranked({"x": np.ones((4, 3))})["y"]
        with pytest.raises(ValueError, match=r"expected B % 2 == 0, got 5 and 2 for B=5"):
            ranked({"x": np.ones((5, 3))})
        return good.shape, good.materialize("test").tolist()
    assert on_mesh("dp=2", run) == [((4,), [3.0] * 4)] * 2


def trace_input(tracer):
    from minipd.framework.dim import symbol
    from minipd.framework.meta import Meta
    return Tensor(tracer.input("x", Meta((symbol("B"), 3), F64)))


# ------------------------------------------------------------------------------------------------ every operator
@pytest.mark.parametrize("name", PLACED)
@settings(max_examples=3)
@given(data=st.data())
def test_a_row_in_a_program(name, data):
    check_in_a_program(name, *data.draw(calls(name)))


@pytest.mark.long
@pytest.mark.parametrize("name", PLACED)
@settings(max_examples=40)
@given(data=st.data())
def test_a_row_in_a_program_in_many_placements(name, data):
    check_in_a_program(name, *data.draw(calls(name)))


def check_in_a_program(name, case, mesh, placements):
    """Values and gradients are those of one rank, and the collectives those of eager ranks."""
    placements = [p if p is None else tuple(R if q.is_partial() else q for q in p) for p in placements]
    row, wrt = ROWS[name], case.differentiable()
    arrays = {f"x{i}": x for i, x in enumerate(case.inputs) if isinstance(x, np.ndarray)}
    seeds = [np.cos(np.arange(float(np.prod(m.shape)))).reshape(m.shape).astype(m.dtype) for m in metas(row, case)]

    def results(xs):
        out = row(*xs, **case.attrs)
        return list(out) if row.multi else [out]

    def derivatives(xs):
        for i in wrt:
            xs[i].stop_gradient = False
        outs = results(xs)
        tracked = [(o, Tensor(s)) for o, s in zip(outs, seeds, strict=True) if not o.stop_gradient]
        gs = grad([o for o, _ in tracked], [xs[i] for i in wrt], [s for _, s in tracked], allow_unused=True) \
            if tracked and wrt else []
        return outs, gs

    traced = trace(lambda *ts: results([ts[list(arrays).index(f"x{i}")] if f"x{i}" in arrays else x
                                        for i, x in enumerate(case.inputs)]),
                   *(InputSpec(a.shape, str(a.dtype), n, stop_gradient=int(n[1:]) not in wrt)
                     for n, a in arrays.items()))
    losses = [v for v in traced.output_values if not v.stop_gradient]
    if losses and wrt:
        inputs = dict(zip(traced.inputs, traced.input_values, strict=True))
        with using(ground=Trace(traced.program)):
            given_ = [Builder(traced.program.global_block()).data(f"s{i}", s.shape, s.dtype)
                      for i, (s, v) in enumerate(zip(seeds, traced.output_values, strict=True)) if not v.stop_gradient]
        gs = append_backward(traced.program, losses, [inputs[f"x{i}"] for i in wrt], given_, pin=True)
        outputs(traced.program, [g for g in gs if g is not None])
    feed = {**arrays, **{f"s{i}": s for i, (s, v) in enumerate(zip(seeds, traced.output_values, strict=True))
                         if losses and wrt and not v.stop_gradient}}
    placed = {f"x{i}": p for i, p in enumerate(placements) if p is not None}
    ran = run_on(mesh.text(), traced.program, placed, feed)

    outs, gs = derivatives([Tensor(x.copy()) if isinstance(x, np.ndarray) else x for x in case.inputs])
    close([ran.outputs[n] for n in traced.outputs], [o.numpy() for o in outs], "result")
    close([ran.outputs[f"g{i}"] for i in range(sum(g is not None for g in gs))],
          [g.numpy().conj() for g in gs if g is not None], "gradient")     # a program's are not conjugated yet

    def eager(mesh):
        xs = [x if p is None and not isinstance(x, np.ndarray) else Tensor(x) if p is None else
              dtensor_from_local(cut(x, mesh, p, RNG)[current().rank], mesh, p, x.shape)
              for x, p in zip(case.inputs, placements, strict=True)]
        derivatives(xs)
        return dict(current().comm.counts)
    if not any(map(np.iscomplexobj, arrays.values())):         # eagerly, a gradient that is conjugated is whole before
        assert ran.collectives == on_mesh(mesh, eager)


def metas(row, case):
    found = row.infer_meta(*case.inputs, **case.attrs)
    return found if row.multi else (found,)


# ------------------------------------------------------------------------------------------------------- state
def stateful(program):
    """w -> w - 0.5 * sum of x's rows, w: f64[4]."""
    build = Builder(program.global_block())
    x, w = build.data("x", (6, 4), F64), build.parameter("w", (4,), F64)
    total, = build.call(ROWS["sum"], (x,), {"axis": (0,)})
    return build, w, total


def test_state_is_written_as_it_is_read():
    program = Program()
    build, w, total = stateful(program)
    half, = build.call(ROWS["scale"], (total,), {"scale": 0.5})
    matched, = build.call(ROWS["match"], (half, w), {})
    new, = build.call(ROWS["subtract"], (w, matched), {})
    build.set_parameter("w", new)
    for placed in ([R, R], [R, S0], [S0, S0]):
        ran = run_on("dp=2,tp=2", program.clone(), {"x": [S0, R], "w": placed}, {"x": X}, {"w": np.ones(4)})
        want = 1 - 0.5 * X.sum(0)
        for rank, scope in enumerate(ran.state):
            parts = cut(want, MESH, placed, RNG)
            np.testing.assert_allclose(scope["w"], parts[rank])


def test_state_whose_new_value_somebody_has_resolved():
    """It was Partial, is replicated by the time it is written, and that is how the state is placed."""
    program = Program()
    build, w, total = stateful(program)
    build.output("y", build.call(ROWS["exp"], (total,), {})[0])
    build.set_parameter("w", total)
    ran = run_on("dp=2,tp=2", program, {"x": [S0, R]}, {"x": X}, {"w": np.ones(4)})
    for scope in ran.state:
        np.testing.assert_allclose(scope["w"], X.sum(0))
    assert all(c == {"all_reduce": 1} for c in ran.collectives)


def test_state_that_would_be_written_otherwise():
    program = Program()
    build, w, total = stateful(program)
    new, = build.call(ROWS["assign"], (total,), {})
    build.set_parameter("w", new)
    whole = completed(program, MESH, {"x": [S0, R], "w": [R, S0]})
    with pytest.raises(ValueError) as error:
        partition(whole, MESH, 0)
    assert str(error.value) == (
        "state w: expected to be written as it is read, f64[4_tp], got f64[4]{P_dp}; reshard the new value to the "
        "placements of the old one (match does it)")


def test_state_that_is_never_read():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (6, 4), F64)
    build.set_parameter("w", x)
    with pytest.raises(ValueError, match=r"state w: expected the program to read it before it is written, as "
                                         r"f64\[6_dp, 4\], for a read tells how it is placed"):
        partition(completed(program, MESH, {"x": [S0, R]}), MESH, 0)


# ---------------------------------------------------------------------------------------------------- branches
def both(x, y):
    total = x.sum(axis=0)
    return cond(x.mean() > y.mean(), lambda: (x.tanh() * y).exp() + total, lambda: x * x - y * total)


def different(x, y):
    return cond(x.sum() > y.sum(), lambda: ROWS["reshard"](x * y, mesh=MESH, placements=(S1, R)),
                lambda: F.softmax(y, axis=1))


def nested(x, y):
    def outer():
        h = x.matmul(y.transpose([1, 0]))
        return cond(h.mean() > 0.0, lambda: h.exp().matmul(y), lambda: x - y * y)
    return cond(x.sum() > y.sum(), outer, lambda: cond(x.sum() > 0.0, lambda: x * 3.0, lambda: y))


def used_in_one(x, y):
    return cond(x.sum() > y.sum(), lambda: x.sum(axis=0) * y, lambda: y * 2.0)


def loop(n, body, start):
    return while_loop(lambda i, h: i < n, lambda i, h: [i + 1, body(i, h)], [0, start])[1]


def looped(x, y):
    total = x.sum(axis=0)
    return loop(3, lambda i, h: (h * y).tanh() + total, x)


def replaced_by_another(x, y):
    """What the loop starts with is placed in another way than what an iteration leaves."""
    return loop(2, lambda i, h: (y * h.mean() + 0.1).exp(), x)


def products(x, y):
    return loop(3, lambda i, h: h.matmul(y.transpose([1, 0])).matmul(y) * 0.1 + x, x)


def nested_loops(x, y):
    def body(i, h):
        g = loop(i, lambda j, g: (g * y).sin() + h, h)
        return cond(g.mean() > 0.0, lambda: g * y, lambda: g.sum(axis=0) - x)
    return loop(3, body, x)


A, B = RNG.normal(size=(2, 6, 4)) * 0.5
BRANCHES = [both, different, nested, used_in_one, looped, replaced_by_another, products, nested_loops]
FEEDS = [(A, B), (B, A), (A + 1, B), (A - 1, B), (-A, B + 1)]
PLACED = [{"x": [S0, R], "y": [S0, R]}, {"x": [S0, S1], "y": [R, S1]}, {"x": [S1, S0], "y": [S0, S1]},
          {"x": [S0, S0], "y": [R, R]}]


@pytest.mark.filterwarnings("ignore:pd_op.if", "ignore:pd_op.while")
@pytest.mark.parametrize("placed", PLACED, ids=str)
@pytest.mark.parametrize("f", BRANCHES)
def test_branches_loops_and_their_gradients(f, placed):
    """Both branches are in every rank's program; all take the same one, as often, which may communicate."""
    traced = trace(f, *specs(x=A, y=B))
    seed = np.cos(np.arange(24.0)).reshape(6, 4)
    given_ = Builder(traced.program.global_block()).data("s", (6, 4), F64)
    gs = append_backward(traced.program, traced.output_values, traced.input_values, [given_], pin=True)
    outputs(traced.program, gs)
    for x, y in FEEDS:
        ran = run_on("dp=2,tp=2", traced.program.clone(), placed, {"x": x, "y": y, "s": seed})
        xs = [paddle.to_tensor(a, stop_gradient=False) for a in (x, y)]
        out = f(*xs)
        grads = grad(out, xs, Tensor(seed), allow_unused=True)
        want = [out.numpy()] + [np.zeros((6, 4)) if g is None else g.numpy() for g in grads]
        close([ran.outputs[n] for n in ("output_0", "g0", "g1")], want, f"{f.__name__}: output or gradient")
        # an exchange of blocks is not the same for every rank
        counts = [{k: n for k, n in c.items() if k not in ("send", "recv")} for c in ran.collectives]
        assert all(c == counts[0] for c in counts)


def test_a_branch_is_printed_and_read_back():
    traced = trace(both, *specs(x=A, y=B))
    whole = completed(traced.program, MESH, PLACED[0])
    local = partition(whole, MESH, 1)
    for program in (whole, local):
        assert parse(program.to_string("exact")) == program
    names = [op.name() for op in local.walk()]
    assert "pd_op.if" in names and names.count("cf.yield") == 2


# ------------------------------------------------------------------------------------------------- random draws
class Noisy(Layer):
    """A model whose loss draws twice in every micro-batch, in two layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Linear(3, 8), Linear(8, 1)
        self.drop = paddle.nn.Dropout(0.5)

    def loss(self, ids, labels, n_tokens):
        h = self.drop(self.first(ids.astype("float64")))
        return (F.dropout(self.second(h), 0.25) * labels.unsqueeze(-1).astype("float64").mean(axis=1)).sum() / n_tokens


def losses_of(step_type, seed, n_micro, steps, mesh, by_hand=False):
    """The losses of some steps, and the parameters afterwards."""
    ids, labels = np.arange(24).reshape(8, 3) % 5, np.arange(24).reshape(8, 3) % 4 + 1
    paddle.seed(seed)
    model = Noisy()
    shard_model(model, mesh, lambda name, m: [R, S1] if name == "first.weight" else [R, R])
    step = step_type(model, SGD(0.01, parameters=model.parameters()), mesh, [S0, R], n_micro=n_micro) \
        if step_type is EagerStep else StaticStep(model, SGD(0.01, parameters=model.parameters()), mesh, [S0, R],
                                                  (8, 3), n_micro)
    found = []
    for i in range(steps):
        if by_hand:
            current().rng.set_step(i)
        found.append(float(current().comm.all_reduce(np.array(step.share(step(ids, labels))), (0, 1, 2, 3))))
    return found, [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize("n_micro", [1, 2])
def test_draws_of_steps(n_micro):
    """B13: anew in every run, the same for one seed, and eager steps draw what compiled steps draw."""
    def run(mesh):
        eager = losses_of(EagerStep, 1, n_micro, 4, mesh)
        return (eager, losses_of(StaticStep, 1, n_micro, 4, mesh), losses_of(StaticStep, 1, n_micro, 4, mesh, True),
                losses_of(StaticStep, 2, n_micro, 4, mesh))
    for eager, static, by_hand, other in on_mesh("dp=2,tp=2", run, F64):
        np.testing.assert_allclose(static[0], eager[0], rtol=1e-10)
        np.testing.assert_allclose(by_hand[0], eager[0], rtol=1e-10)
        for got, want in zip(static[1], eager[1], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10)
        assert len(set(np.round(eager[0], 9))) == 4 and abs(other[0][0] - eager[0][0]) > 1e-6


def test_a_mesh_draws_what_one_rank_draws():
    single = on_mesh("dp=1,tp=1", lambda m: losses_of_one(m), F64)[0]
    for got in on_mesh("dp=2,tp=2", lambda m: losses_of(EagerStep, 1, 2, 3, m)[0], F64):
        np.testing.assert_allclose(got, single, rtol=1e-10)


def losses_of_one(mesh):
    ids, labels = np.arange(24).reshape(8, 3) % 5, np.arange(24).reshape(8, 3) % 4 + 1
    paddle.seed(1)
    model = Noisy()
    shard_model(model, mesh, lambda name, m: [R, R])
    step = EagerStep(model, SGD(0.01, parameters=model.parameters()), mesh, [R, R], n_micro=2)
    return [step.share(step(ids, labels)) for _ in range(3)]


def test_tracing_a_step_draws_nothing():
    def run(mesh):
        paddle.seed(5)
        model = Noisy()
        shard_model(model, mesh, lambda name, m: [R, R])
        before = current().rng.get_state()
        StaticStep(model, SGD(0.01, parameters=model.parameters()), mesh, [S0, R], (8, 3), 2)
        return current().rng.get_state() == before
    assert on_mesh("dp=2,tp=2", run, F64) == [True] * 4


# -------------------------------------------------------------------------------------------- captured tensors
@pytest.mark.parametrize("placed", [None, [S0, R], [R, S1], [P, R], [R, R]], ids=str)
def test_captured_tensors_are_read_when_the_program_runs(placed):
    """Distributed or not, also after they were written in place or rebound; each rank reads its part."""
    table = np.arange(8.0).reshape(2, 4)

    def run(mesh):
        buffer = paddle.to_tensor(table) if placed is None else shard_tensor(table, mesh, placed)
        program = Program()
        tracer = Trace(program)
        with using(ground=tracer, middle=None), program.constraints.collect():
            x = Tensor(tracer.input("x", paddle.to_tensor(X[:2]).payload))
            tracer.build.output("y", (x * buffer + buffer.sum()).payload)
        ranked = RankProgram(program, tracer, mesh, {}, {"x": [S0, R]})
        first = ranked({"x": X[:2]})["y"].materialize("test")
        buffer.set_value(table * 2.0)
        second = ranked({"x": X[:2]})["y"].materialize("test")
        buffer.payload = (buffer + 1.0).payload
        third = ranked({"x": X[:2]})["y"].materialize("test")
        return first, second, third
    for got in on_mesh("dp=2,tp=2", run):
        for y, t in zip(got, (table, table * 2, table * 2 + 1), strict=True):
            np.testing.assert_allclose(y, X[:2] * t + t.sum())


def test_a_captured_tensor_that_the_trace_has_written():
    def run(mesh):
        buffer = paddle.ones([2, 4], "float64")
        program = Program()
        tracer = Trace(program)
        with using(ground=tracer, middle=None), program.constraints.collect():
            x = Tensor(tracer.input("x", paddle.to_tensor(X[:2]).payload))
            tracer.build.output("y", (x * buffer).payload)
            buffer.add_(x)
        ranked = RankProgram(program, tracer, mesh, {}, {})
        with pytest.raises(RuntimeError, match="the traced function has written it in place, so it must be program "
                                               "state"):
            ranked({"x": X[:2]})
    on_mesh("dp=1", run)


def test_local_programs_need_ranks():
    """A collective says how to start some."""
    program = trace(lambda x: x.sum(axis=0).exp(), *specs(x=X)).program
    local = partition(completed(program, MESH, {"x": [S0, R]}), MESH, 0)
    with pytest.raises(RuntimeError, match="all_reduce: this rank has no communicator; start ranks with `minipd"):
        Executor(local).run({"x": X[:3]})
