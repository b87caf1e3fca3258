"""What holds for every program, on random ones: texts and copies say the same, and all ways to run it agree."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.executor import Executor, Scope
from minipd.framework.dim import DimExpr, substitute_all
from minipd.framework.errors import InputError
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.equality import difference
from minipd.ir.interpret import interpret
from minipd.ir.paddle import to_paddle
from minipd.ir.parser import parse
from minipd.ir.serialize import program_json, read_program
from minipd.ir.types import TensorType
from minipd.ir.verify import verify
from minipd.passes import create_pass, pass_names
from tests.ir.random_programs import programs


@given(programs(strange=True))
def test_a_strange_program_is_kept(program):
    """Operations that no dialect knows print, parse and are copied like all others."""
    verify(program, allow_unregistered=True)
    text = program.to_string("exact")
    back = parse(text)
    assert difference(back, program) is None and back.to_string("exact") == text and str(back) == str(program)
    copy = program.clone()
    assert copy == program and copy.to_string("exact") == text
    verify(back, allow_unregistered=True)


@given(programs(strange=True))
@settings(max_examples=40)
def test_dead_code_of_strange_programs(program):
    """What nobody knows is not removed: it may have effects."""
    strange = [op.name() for op in program.walk() if not op.info.registered and op.parent is program.global_block()]
    remove_dead_ops(program)
    verify(program, allow_unregistered=True)
    assert strange == [op.name() for op in program.walk()
                       if not op.info.registered and op.parent is program.global_block()]


@given(programs(symbolic=False, strange=True))
@settings(max_examples=60)
def test_programs_come_back_from_paddles_json(program):
    """... in Paddle's form, but for the users' lines, which its files do not keep."""
    for op in program.walk():
        op.attributes.pop("op_callstack", None)
    saved = to_paddle(program)
    try:
        text = program_json(saved)
    except InputError as error:             # an open size as a fact, a number that JSON has no word for
        assert any(words in str(error) for words in ("sizes that are known", "Paddle has", "finite complex"))
        return
    back = read_program(text).program
    assert difference(back, saved) is None and program_json(back) == text


def observed(program):
    """Every tensor of the global block an output."""
    build = Builder(program.global_block())
    for i, value in enumerate([r for op in program.global_block() for r in op.results()
                               if isinstance(r.type(), TensorType)]):
        build.output(f"output_{i}", value)
    return program


@st.composite
def sized(draw, program):
    """Sizes that a program takes: (S0 + 1) / 2 and Broadcast(S0,S1) are sizes, and what is assumed of them holds."""
    if len(program.constraints):
        return {"S0": 5, "S1": 5, "S2": draw(st.sampled_from([1, 5]))}
    s0 = draw(st.sampled_from([1, 3, 5, 7]))
    s1 = draw(st.integers(0, 7)) if s0 == 1 else draw(st.sampled_from([1, s0]))
    return {"S0": s0, "S1": s1, "S2": draw(st.integers(0, 3))}


def drawn(value, sizes, rng):
    shape = substitute_all(value.shape, sizes)
    return np.rint(rng.standard_normal(shape) * 3).astype(value.dtype)


def known_inputs(program, sizes, rng):
    """(feed, state) at these sizes, with an input that tells the size of each symbol."""
    build = Builder(program.global_block(), program.global_block().front())
    for name in sizes:
        build.data(f"size of {name}", (DimExpr((((name,), 1),), 1),), "float32")
    feed = {op.attributes["name"].value: drawn(op.result(0), sizes, rng) for op in program.global_block()
            if op.name() == "pd_op.data"}
    state = {name: drawn(value, sizes, rng) for name, value in program.parameters().items()}
    return feed, state


def assert_same(got, want):
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        np.testing.assert_array_equal(*(a if a.dtype.kind in "biu" else a.astype(np.float64)
                                        for a in (got[name], array)), err_msg=name)


@given(programs().map(observed), st.data())
@settings(max_examples=60)
@np.errstate(all="ignore")
def test_the_executor_does_what_the_interpreter_says(program, data):
    """... for one executor, at one size and then at another; and so does what was read back from text."""
    executor = None
    for _ in range(2):
        sizes = data.draw(sized(program))
        copy = program.clone()
        feed, state = known_inputs(copy, sizes, np.random.default_rng(0))
        outputs, written = interpret(copy, feed, state)
        executor, scope = executor or Executor(copy), Scope(state)
        assert_same(executor.run(feed, scope), outputs)
        assert_same(dict(scope), {**state, **written})
        again = parse(copy.to_string("exact"))
        assert_same(interpret(again, feed, state)[0], outputs)


@given(programs(max_ops=16).map(observed), st.data())
@settings(max_examples=30)
@np.errstate(all="ignore")
def test_passes_keep_the_meaning_at_every_size(program, data):
    """To the bit, those that promise it.  (The others look for what such programs seldom have.)"""
    sizes = data.draw(sized(program))
    feed, state = known_inputs(program, sizes, np.random.default_rng(0))
    want = interpret(program, feed, state)
    for each in filter(lambda each: each.exact, map(create_pass, pass_names())):
        changed = program.clone()
        if not each.run(changed):
            continue
        verify(changed)
        for got, expected in zip(interpret(changed, feed, {**state}), want, strict=True):
            assert_same(got, expected)
