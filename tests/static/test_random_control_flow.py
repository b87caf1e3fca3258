"""Random programs of nested branches and loops: the executor, the interpreter, eager mode and numpy agree.

A program is a list of statements on a few variables, vectors of two numbers.  `if` and `while` stand in each other at
any depth.  A loop carries some of the variables; the others it reads from around it, and what an iteration does to them
is forgotten by the next.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.autograd.engine import grad
from minipd.executor import Executor, Memory
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.interpret import interpret
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.ops.creation import to_tensor
from minipd.passes.library.common_subexpression_elimination import CommonSubexpressionElimination
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop

N = 4
NAMES = [f"v{i}" for i in range(N)]
FORMULAS = {
    "mix": lambda a, b: a * 0.7 - b * 0.4, "tanh": lambda a, b: (a + b).tanh(), "product": lambda a, b: a * b * 0.5,
    "sine": lambda a, b: a.sin() + b * 0.1, "copy": lambda a, b: b, "sum": lambda a, b: a.sum() + b,
    "reverse": lambda a, b: a.flip(0) - b, "constant": lambda a, b: b * 0.0 + 0.25,
    "detached": lambda a, b: a.detach() + b}
IN_NUMPY = FORMULAS | {"tanh": lambda a, b: np.tanh(a + b), "sine": lambda a, b: np.sin(a) + b * 0.1,
                       "reverse": lambda a, b: a[::-1] - b, "detached": lambda a, b: a + b}

variables = st.integers(0, N - 1)
assignments = st.tuples(st.just("assign"), variables, st.sampled_from(sorted(FORMULAS)), variables, variables)
tests_ = st.tuples(variables, st.sampled_from([-0.5, 0.0, 0.3]))


def blocks(inner):
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if"), tests_, lists, lists),
        # at most so many iterations, as long as the test holds; which variables are carried
        st.tuples(st.just("while"), st.integers(0, 3), st.none() | tests_, st.sets(variables, min_size=1), lists))


statements = st.lists(st.recursive(assignments, lambda s: s | blocks(s), max_leaves=12), min_size=1, max_size=4)


def on_tensors(program, env):
    """The variables after `program`, with `cond` and `while_loop`."""
    for kind, *rest in program:
        if kind == "assign":
            target, formula, a, b = rest
            env = [*env[:target], FORMULAS[formula](env[a], env[b]), *env[target + 1:]]
        elif kind == "if":
            (at, limit), true, false = rest
            env = cond(env[at].sum() > limit, lambda e=env, p=true: on_tensors(p, e),
                       lambda e=env, p=false: on_tensors(p, e))
        else:
            most, test, carried, body = rest
            carried = sorted(carried)

            def around(values, env=env, carried=carried):
                found = list(env)
                for i, v in zip(carried, values, strict=True):
                    found[i] = v
                return found

            def going(n, *values, most=most, test=test, around=around):
                return n < most if test is None else (n < most).logical_and(around(values)[test[0]].sum() > test[1])

            def step(n, *values, body=body, carried=carried, around=around):
                after = on_tensors(body, around(values))
                return [n + 1, *(after[i] for i in carried)]
            _, *values = while_loop(going, step, [0, *(env[i] for i in carried)])
            env = around(values)
    return env


def in_numpy(program, env):
    env = list(env)
    for kind, *rest in program:
        if kind == "assign":
            target, formula, a, b = rest
            env[target] = IN_NUMPY[formula](env[a], env[b])
        elif kind == "if":
            (at, limit), true, false = rest
            env = in_numpy(true if env[at].sum() > limit else false, env)
        else:
            most, test, carried, body = rest
            n, inside = 0, list(env)
            while n < most and (test is None or inside[test[0]].sum() > test[1]):
                after = in_numpy(body, inside)
                n, inside = n + 1, [after[i] if i in carried else env[i] for i in range(N)]
            env = inside
    return env


def loss(values):
    return sum(((i + 1.0) * v).sum() for i, v in enumerate(values))


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@given(statements, st.integers(0, 9))
@settings(max_examples=20)
def test_all_ways_to_run_agree(program, seed):
    agree(program, seed)


@pytest.mark.long
@given(statements, st.integers(0, 9))
@settings(max_examples=600)
def test_all_ways_to_run_agree_often(program, seed):
    agree(program, seed)


def agree(program, seed):
    arrays = dict(zip(NAMES, np.random.default_rng(seed).uniform(-1, 1, (N, 2)), strict=True))

    def f(*xs):
        values = on_tensors(program, list(xs))
        return *values, loss(values)
    xs = [to_tensor(a, stop_gradient=False) for a in arrays.values()]
    eager = f(*xs)
    expected = [x.numpy() for x in eager]
    close(expected[:N], in_numpy(program, arrays.values()))
    gradients = [np.zeros(2) if g is None else g.numpy() for g in grad(eager[N], xs, allow_unused=True)]

    traced = trace(f, *(InputSpec((2,), "float64", n, stop_gradient=False) for n in NAMES))
    whole = verify(traced.program)
    forward = whole.clone()
    gs = append_backward(whole, [traced.output_values[N]], traced.input_values)
    for name, g in zip(NAMES, gs, strict=True):
        if g is not None:
            Builder(whole.global_block()).output(f"d{name}", g)
    assert parse(verify(whole).to_string("exact")) == whole == whole.clone()
    lean = whole.clone()
    CommonSubexpressionElimination().run(lean)
    remove_dead_ops(lean)
    verify(lean)

    def check(found, with_gradients=True):
        close([found[f"output_{i}"] for i in range(N)], expected[:N])
        for name, g in zip(NAMES, gradients, strict=True):
            if with_gradients:
                close(found.get(f"d{name}", np.zeros(2)), g)

    check(Executor(forward).run(arrays), with_gradients=False)
    executor, memory = Executor(lean), Memory()
    executor.run(arrays)
    check(executor.run(arrays, memory=memory))          # in memory that was used before
    assert memory.peak >= memory.live
    check(interpret(whole, arrays)[0])
