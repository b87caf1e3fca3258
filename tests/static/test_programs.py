"""Copies of programs, guards within guards, gradients that end where they should: static mode beyond one program."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn, static
from minipd.nn import functional as F

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)).astype("float32")
IMAGES = RNG.standard_normal((5, 2, 4, 4)).astype("float32")


@pytest.fixture(autouse=True)
def programs():
    """Fresh default programs and a fresh scope, in static mode."""
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(static.Program(), static.Program()):
            yield
    finally:
        paddle.disable_static()


def started():
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe


def test_a_copy_for_tests_computes_what_layers_in_evaluation_mode_compute():
    x = static.data("x", [None, 2, 4, 4])
    inner, outer = nn.BatchNorm2D(2, momentum=0.5, epsilon=1e-3), nn.Linear(32, 3)
    y = outer(F.dropout(inner(F.dropout(x, 0.5, axis=[0, 1], mode="downscale_in_infer")).flatten(1), 0.25))
    loss = y.square().mean()
    early = static.default_main_program().clone(for_test=True)
    paddle.optimizer.Adam(0.01).minimize(loss)
    late = static.default_main_program().clone(for_test=True)
    exe = started()
    for _ in range(3):
        exe.run(feed={"x": IMAGES}, fetch_list=[loss])
    scope = static.global_scope()
    weights = {p.name: np.array(scope.find_var(p.name)) for p in (*inner.state_dict().values(), *outer.parameters())}
    results = [exe.run(p, feed={"x": IMAGES}, fetch_list=[y, loss.name]) for p in (early, late, late.clone())]
    assert all((np.array(scope.find_var(name)) == a).all() for name, a in weights.items())      # nothing was trained
    mean, variance = weights[inner._mean.name], weights[inner._variance.name]
    scale, shift = weights[inner.weight.name], weights[inner.bias.name]
    per = (1, 2, 1, 1)
    h = (IMAGES * 0.5 - mean.reshape(per)) / np.sqrt(variance.reshape(per) + 1e-3)
    h = h * scale.reshape(per) + shift.reshape(per)
    want = h.reshape(5, 32) @ weights[outer.weight.name] + weights[outer.bias.name]
    for got, got_loss in results:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got_loss, (want ** 2).mean(), rtol=1e-4)
    names = [op.name() for op in late.global_block()]
    assert "pd_op.dropout" not in names and not any("adam" in n or "standardize" in n for n in names)
    assert names == [op.name() for op in early.global_block()]


def test_a_copy_for_tests_reaches_into_branches_and_keeps_alpha_dropout():
    x = static.data("x", [None, 4])
    y = static.nn.cond(x.mean() > 0.0, lambda: F.dropout(x, 0.5), lambda: F.dropout(x, 0.25, mode="downscale_in_infer"))
    z = F.alpha_dropout(x, 0.5)
    test = static.default_main_program().clone(True)
    exe = static.Executor()
    for sign, factor in ((1.0, 1.0), (-1.0, 0.75)):
        given = sign * np.abs(X)
        got, other = exe.run(test, feed={"x": given}, fetch_list=[y, z])
        np.testing.assert_allclose(got, given * factor, rtol=1e-6)
        assert len(np.unique(np.round(other - other.min(), 5))) < other.size       # what was dropped is all the same


def test_a_plain_copy_trains_on_its_own():
    x = static.data("x", [None, 4])
    loss = static.nn.fc(x, 1).square().mean()
    paddle.optimizer.SGD(0.1).minimize(loss)
    main = static.default_main_program()
    copy = main.clone()
    assert copy == main and copy is not main and [p.name for p in copy.all_parameters()] == [
        p.name for p in main.all_parameters()]
    exe = started()
    start = {name: t.numpy() for name, t in main.state_dict().items()}
    got = [exe.run(p, feed={"x": X}, fetch_list=[loss])[0].item() for p in (main, copy, main)]
    main.set_state_dict(start)
    want = [exe.run(main, feed={"x": X}, fetch_list=[loss])[0].item() for _ in range(3)]
    assert got == want and got[0] > got[1] > got[2]
    with static.program_guard(copy):
        paddle.ones([2]) + 1.0
    assert copy.num_ops() > main.num_ops()


def test_programs_that_are_built_alike_share_parameters():
    def net(training):
        x = static.data("x", [None, 4])
        return F.dropout(static.nn.fc(x, 3), 0.5, training=training)

    main, test, startup = static.Program(), static.Program(), static.Program()
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup):
        net(True)
    with paddle.utils.unique_name.guard(), static.program_guard(test, static.Program()):
        y = net(False)
    assert all([p.name for p in program.all_parameters()] == ["fc_0.w_0", "fc_0.b_0"] for program in (main, test))
    exe = static.Executor()
    exe.run(startup)
    got, = exe.run(test, feed={"x": X}, fetch_list=[y])
    np.testing.assert_allclose(got, X @ np.array(static.global_scope().find_var("fc_0.w_0")), rtol=1e-5)


def test_guards_within_guards_and_modes_within_modes():
    paddle.enable_static()                                              # again: nothing changes
    first = static.default_main_program()
    with static.program_guard(static.Program(), static.Program()) as nothing:
        with static.program_guard(first):
            static.data("x", [2])
        assert nothing is None and static.default_main_program() is not first
        with paddle.base.dygraph.guard():
            assert (paddle.ones([2]) + 1.0).tolist() == [2.0, 2.0] and not paddle.framework.in_pir_mode()
        assert not paddle.in_dynamic_mode() and paddle.base.in_pir_mode()
    assert static.default_main_program() is first and first.num_ops() == 1


def test_values_of_other_programs_are_refused():
    with static.program_guard(static.Program(), static.Program()):
        elsewhere = static.data("x", [2])
    with pytest.raises(ValueError, match="add: expected a value that is seen from here, .*another program"):
        elsewhere + 1.0


def test_where_gradients_end():
    x = static.data("x", [None, 4])
    a = static.nn.fc(x, 3, name="a")
    b = static.nn.fc(paddle.tanh(a), 1, name="b")
    loss = b.mean()
    of = lambda **given: [p.name for p, _ in static.append_backward(loss, **given)]     # noqa: E731
    assert of() == ["a.w_0", "a.b_0", "b.w_0", "b.b_0"]
    assert of(no_grad_set={"a.w_0"}) == ["a.b_0", "b.w_0", "b.b_0"]
    assert of(no_grad_set={a}) == ["b.w_0", "b.b_0"]                    # nor what is behind a
    assert of(parameter_list=["b.b_0", "a.w_0"]) == ["b.b_0", "a.w_0"]


def test_an_input_that_was_used_before_it_wanted_a_gradient_is_refused():
    x = static.data("x", [4])
    early = static.data("early", [4])
    early.stop_gradient = False
    y = x * 2.0 + early
    x.stop_gradient = False
    with pytest.raises(RuntimeError, match="expected x to have stop_gradient=False from the start"):
        static.gradients(y.sum(), [early, x])
    g, = static.gradients(y.sum(), [early])
    np.testing.assert_array_equal(static.Executor().run(feed={"x": X[0], "early": X[1]}, fetch_list=[g])[0], np.ones(4))


def test_what_is_fed_and_fetched_may_be_nested_and_wide():
    x = static.data("x", [4])
    y = x + 1.0
    got = static.Executor().run(static.CompiledProgram(static.default_main_program(), static.BuildStrategy()),
                                feed=[{"x": X[0].astype("float64")}], fetch_list=[[y, "x"], y])
    assert [a.dtype for a in got] == ["float32"] * 3
    np.testing.assert_array_equal(got[0], X[0] + 1)
    np.testing.assert_array_equal(got[1], X[0])


class Pairs(paddle.io.Dataset):
    def __getitem__(self, i):
        return X[i], np.array([i])

    def __len__(self):
        return 4


def test_a_loader_feeds_programs():
    x, i = static.data("x", [None, 4]), static.data("i", [None, 1], "int64")
    y = x.sum(axis=-1) + i.astype("float32").squeeze(-1)
    exe, loader = static.Executor(), paddle.io.DataLoader(Pairs(), feed_list=[x, i], return_list=False, batch_size=2)
    got = [exe.run(feed=batch, fetch_list=[y])[0] for batch in loader()]
    np.testing.assert_allclose(np.concatenate(got), X[:4].sum(-1) + np.arange(4), rtol=1e-5)
    with pytest.raises(ValueError, match="expected a field for each of the inputs x, got 2"):
        next(iter(paddle.io.DataLoader(Pairs(), feed_list=[x], return_list=False)))


def test_mixed_precision_in_a_program():
    x = static.data("x", [4, 4])
    with paddle.amp.auto_cast(dtype="bfloat16"):
        h = static.nn.fc(x, 3)
    loss = h.astype("float32").square().mean()
    assert h.dtype == "bfloat16"
    with pytest.raises(RuntimeError, match="GradScaler.minimize: expected eager mode"):
        paddle.amp.GradScaler().minimize(paddle.optimizer.SGD(0.1), loss)
    paddle.optimizer.SGD(0.1).minimize(loss)
    exe = started()
    losses = [exe.run(feed={"x": X[:4]}, fetch_list=[loss])[0].item() for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]


def test_names_of_places_and_parts():
    assert static.cpu_places(2) == [paddle.CPUPlace()] * 2 and len(static.cpu_places()) == 1
    with pytest.raises(RuntimeError, match="CPU"):
        static.cuda_places()
    with static.device_guard("gpu:0"), static.name_scope("part"):
        static.data("x", [2])
    with pytest.raises(ValueError, match="device_guard: expected 'cpu', .* got 'oven'"), static.device_guard("oven"):
        pass
    with pytest.raises(ValueError, match="without a slash, got 'a/b'"), static.name_scope("a/b"):
        pass
    with pytest.raises(TypeError, match="CompiledProgram: expected a static.Program, got int"):
        static.CompiledProgram(3)
    with pytest.raises(TypeError, match="expected a BuildStrategy, got dict"):
        static.CompiledProgram(static.Program(), {})
