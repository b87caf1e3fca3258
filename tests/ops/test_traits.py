"""What traits promise of a row, held to it on every case: passes will rely on these promises."""

import numpy as np

import minipd  # noqa: F401  (wires every floor)
from minipd.autograd.mode import no_grad
from minipd.framework.row import Trait
from minipd.framework.tensor import Tensor
from tests.ops.case import CASES
from tests.ops.test_rows import LIBRARY, assert_close, for_each, rows, run


def having(trait):
    return rows(lambda row: trait in row.traits)


@rows(lambda row: Trait.VIEW not in row.traits)
def test_only_views_share_memory(name):
    """Else an in-place write to the result would change an operand that nobody named."""
    def check(case):
        for out in run(name, case.inputs, case.attrs):
            for x in case.inputs:
                assert not (isinstance(x, np.ndarray) and np.shares_memory(out, x))

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.VIEW)
def test_views_copy_nothing(name):
    def check(case):
        x = np.array(case.inputs[0])
        for out in run(name, (x, *case.inputs[1:]), case.attrs):
            assert out.size == 0 or np.shares_memory(out, x)

    for_each([(case,) for case in CASES[name]], check)


@rows(lambda row: row.put_back is not None and not row.multi)
def test_putting_a_view_back(name):
    """What a program does for a write through a view: the base with the view's elements replaced, and no others."""
    row = LIBRARY[name]

    def check(case):
        base = case.inputs[0]
        view = run(name, case.inputs, case.attrs)[0]
        new = np.random.default_rng(0).normal(size=view.shape).astype(view.dtype)
        with no_grad():
            got = row.put_back(Tensor(base), Tensor(new), **case.attrs).payload
        want = np.array(base)
        run(name, (want, *case.inputs[1:]), case.attrs)[0][...] = new            # through memory, as eager mode does
        np.testing.assert_array_equal(got, want)

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.COMMUTATIVE)
def test_operands_commute(name):
    def check(case):
        x, y = case.inputs
        for a, b in zip(run(name, (x, y), case.attrs), run(name, (y, x), case.attrs), strict=True):
            assert_close(a, b, exact=a.dtype.kind != "c")       # fused multiply-adds round one of two products

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.INPLACE)
def test_results_may_be_written_over_their_operands(name):
    row = LIBRARY[name]
    assert row.inplace

    def check(case):
        want = run(name, case.inputs, case.attrs)
        inputs = [np.array(x) if isinstance(x, np.ndarray) else x for x in case.inputs]
        buffers = tuple(inputs[row.inplace[i]] if i in row.inplace else np.empty_like(w) for i, w in enumerate(want))
        row.kernel_out_for(inputs)(buffers if row.multi else buffers[0], *inputs, **case.attrs)
        for buffer, w in zip(buffers, want, strict=True):
            assert_close(buffer, w)

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.MULTI)
def test_rows_of_several_results_name_them(name):
    case = CASES[name][0]
    results = run(name, case.inputs, case.attrs)
    assert len(results) > 1
    assert len(LIBRARY[name].outputs) in (1, len(results))             # one name for a list of any length


@having(Trait.RANDOM)
def test_a_draw_is_a_function_of_its_key(name):
    """Two calls are two draws by having two keys: with one key they are one."""
    def check(case):
        at = LIBRARY[name].inputs.index("key")
        other = tuple(x + 1 if i == at else x for i, x in enumerate(case.inputs))
        (a,), (b,), (c,) = (run(name, inputs, case.attrs) for inputs in (case.inputs, case.inputs, other))
        np.testing.assert_array_equal(a, b)
        if a.size > 5 and 0.0 < case.attrs.get("p", 0.5) < 1.0:
            assert (a != c).any()

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.ELEMENTWISE)
def test_elementwise_means_element_by_element(name):
    """Any element of the result depends on the elements of the operands in the same place, and on nothing else."""
    def check(case):
        arrays = [x for x in case.inputs if isinstance(x, np.ndarray)]
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        want = run(name, case.inputs, case.attrs)[0]
        assert want.shape == shape
        for at in list(np.ndindex(shape))[:5]:
            single = tuple(np.asarray(np.broadcast_to(x, shape)[at]) if isinstance(x, np.ndarray) else x
                           for x in case.inputs)
            np.testing.assert_array_equal(run(name, single, case.attrs)[0], want[at])

    for_each([(case,) for case in CASES[name]], check)


@having(Trait.DISCRETE)
def test_a_discrete_result_has_no_gradient_and_no_fractions(name):
    assert not LIBRARY[name].has_vjp
    for case in CASES[name]:
        metas = LIBRARY[name].infer_meta(*case.inputs, **case.attrs)
        assert all(meta.dtype.kind in "biu" for meta in (metas if LIBRARY[name].multi else (metas,)))


@having(Trait.ALLOCATES)
def test_a_row_that_allocates_fills_no_buffer(name):
    assert LIBRARY[name].kernel_out is None


def test_every_trait_of_the_library_is_held_to_its_promise():
    tested = {Trait.VIEW, Trait.COMMUTATIVE, Trait.INPLACE, Trait.MULTI, Trait.RANDOM, Trait.ELEMENTWISE, Trait.EXACT,
              Trait.DISCRETE, Trait.ALLOCATES}
    used = {trait for row in LIBRARY.values() for trait in row.traits}
    assert used <= tested                       # EXACT: test_values_and_dtypes compares without any tolerance


