"""Static mode: programs written by ordinary code and run by an Executor compute what eager code computes."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import minipd as paddle
from minipd import nn, static
from minipd.framework.context import Kernels
from minipd.framework.rank import current
from minipd.nn import functional as F

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)).astype("float32")
Y = RNG.standard_normal((6, 1)).astype("float32")


@pytest.fixture
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


def test_nothing_is_computed_before_the_run(programs):
    x = static.data("x", [None, 4])
    y = (x * 2.0).sum(axis=1)
    with pytest.raises(TypeError, match="numpy"):
        y.numpy()
    assert y.shape[0] == x.shape[0] and str(static.default_main_program()).count("pd_op.sum") == 1
    exe = static.Executor()
    for n in (1, 3, 0):                         # the batch may have any size
        got, = exe.run(feed={"x": X[:n]}, fetch_list=[y])
        np.testing.assert_allclose(got, 2 * X[:n].sum(axis=1), rtol=1e-6)


def eager_training(optimizer, steps):
    paddle.disable_static()
    layer = nn.Linear(4, 1, nn.initializer.Constant(0.5), nn.initializer.Constant(0.25))
    opt = optimizer(layer.parameters())
    losses = []
    for _ in range(steps):
        loss = ((layer(paddle.to_tensor(X)) - paddle.to_tensor(Y)) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses, layer.weight.numpy()


@pytest.mark.parametrize("optimizer", [
    lambda p: paddle.optimizer.SGD(0.1, parameters=p),
    lambda p: paddle.optimizer.Momentum(0.1, parameters=p),
    lambda p: paddle.optimizer.Adam(0.1, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.5)),
    lambda p: paddle.optimizer.AdamW(0.1, parameters=p, weight_decay=0.1),
], ids=["sgd", "momentum", "adam, clipped", "adamw"])
def test_training_equals_eager_training(programs, optimizer):
    x, y = static.data("x", [None, 4]), static.data("y", [None, 1])
    layer = nn.Linear(4, 1, nn.initializer.Constant(0.5), nn.initializer.Constant(0.25))
    loss = ((layer(x) - y) ** 2).mean()
    optimizer(None).minimize(loss)
    exe = started()
    losses = [exe.run(feed={"x": X, "y": Y}, fetch_list=[loss])[0].item() for _ in range(5)]
    weight = np.array(static.global_scope().find_var(layer.weight.name).get_tensor())
    want, want_weight = eager_training(optimizer, 5)
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_allclose(weight, want_weight, rtol=1e-4)


def test_a_schedule_sets_the_rate_of_every_run(programs):
    x = static.data("x", [2])
    w = static.create_parameter([2], "float32", name="w", default_initializer=nn.initializer.Constant(1.0))
    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=1, gamma=0.1)
    paddle.optimizer.SGD(schedule).minimize((w * x).sum())
    exe = started()
    seen = []
    for _ in range(3):
        exe.run(feed={"x": np.ones(2, "float32")})
        seen.append(np.array(static.global_scope().find_var("w"))[0])
        schedule.step()
    np.testing.assert_allclose(seen, [0.5, 0.45, 0.445], rtol=1e-6)


def test_what_the_startup_program_writes_is_what_eager_parameters_start_with(programs):
    paddle.seed(5)
    layer = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    started()
    names = [p.name for p in layer.parameters()]
    found = [np.array(static.global_scope().find_var(name)) for name in names]
    paddle.disable_static()
    paddle.seed(5)
    for got, p in zip(found, nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).parameters(), strict=True):
        np.testing.assert_array_equal(got, p.numpy())


def test_running_statistics_are_state(programs):
    x = static.data("x", [None, 4])
    layer = nn.BatchNorm1D(4, momentum=0.5)
    y = layer(x)
    exe = started()
    exe.run(feed={"x": X}, fetch_list=[y])
    exe.run(feed={"x": X}, fetch_list=[y])
    got = np.array(static.global_scope().find_var(layer._mean.name))
    np.testing.assert_allclose(got, 0.75 * X.mean(axis=0), rtol=1e-4, atol=1e-6)


def test_every_run_draws_anew_and_a_seed_repeats(programs):
    y = F.dropout(paddle.ones([64]), 0.5)
    exe = static.Executor()
    first, second = (exe.run(fetch_list=[y])[0] for _ in range(2))
    assert (first != second).any() and set(np.unique(first)) == {0.0, 2.0}
    static.default_main_program().random_seed = 7
    first, second = (exe.run(fetch_list=[y])[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_gradients(programs):
    x = static.data("x", [3])
    x.stop_gradient = False
    y = (x * x * x).sum()
    g, = static.gradients([y], [x])
    gg, = static.gradients([g], [x])
    got = static.Executor().run(feed={"x": np.float32([1, 2, 3])}, fetch_list=[g, gg, y])
    np.testing.assert_allclose(got[0], [3, 12, 27])
    np.testing.assert_allclose(got[1], [6, 12, 18])
    assert got[2] == 36.0


def test_append_backward(programs):
    x = static.data("x", [2, 4])
    loss = static.nn.fc(x, 1, bias_attr=False).sum()
    (p, g), = static.append_backward(loss)
    exe = started()
    got, = exe.run(feed={"x": X[:2]}, fetch_list=[g])
    assert p is static.default_main_program().all_parameters()[0]
    np.testing.assert_allclose(got, X[:2].sum(axis=0)[:, None], rtol=1e-5)


def test_fc(programs):
    x = static.data("x", [None, 2, 2])
    y = static.nn.fc(x, 3, num_flatten_dims=1, activation="relu",
                     weight_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(-0.5)),
                     bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(1.0)))
    z = static.nn.fc([x, x], 1, num_flatten_dims=2, weight_attr=paddle.ParamAttr(
        initializer=nn.initializer.Constant(1.0)), bias_attr=False)
    data = np.arange(8, dtype="float32").reshape(2, 2, 2)
    got = started().run(feed={"x": data}, fetch_list=[y, z])
    sums = data.reshape(2, 4).sum(1, keepdims=True)
    np.testing.assert_allclose(got[0], np.maximum(1 - 0.5 * sums, 0) @ np.ones((1, 3)))
    np.testing.assert_allclose(got[1], 2 * data.sum(-1, keepdims=True))


def test_fetching_by_name_and_as_tensors(programs):
    x = static.data("x", [2])
    y = x + 1.0
    exe = static.Executor()
    by_name, = exe.run(feed={"x": X[0, :2]}, fetch_list=y.name)
    tensor, = exe.run(feed={"x": X[0, :2]}, fetch_list=[y], return_numpy=False)
    np.testing.assert_array_equal(by_name, X[0, :2] + 1)
    assert isinstance(tensor, paddle.Tensor)


def test_only_what_is_fetched_needs_its_inputs(programs):
    x, label = static.data("x", [2]), static.data("label", [2])
    y = x + 1.0
    loss = (y - label).sum()
    exe = static.Executor()
    exe.run(feed={"x": X[0, :2]}, fetch_list=[y])
    with pytest.raises(ValueError, match="expected a value for the input 'label', which the values that are fetched"):
        exe.run(feed={"x": X[0, :2]}, fetch_list=[loss])


def test_tensors_from_outside_are_read_as_they_are_then(programs):
    paddle.disable_static()
    outside = paddle.to_tensor([1.0, 2.0])
    paddle.enable_static()
    x = static.data("x", [2])
    y = x * outside
    exe = static.Executor()
    np.testing.assert_allclose(exe.run(feed={"x": np.float32([1, 1])}, fetch_list=[y])[0], [1, 2])
    paddle.disable_static()
    outside.set_value(np.float32([5, 6]))
    np.testing.assert_allclose(exe.run(static.default_main_program(), {"x": np.float32([1, 1])}, fetch_list=[y])[0],
                               [5, 6])


def test_saving_and_loading(programs, tmp_path):
    x = static.data("x", [1, 4])
    loss = static.nn.fc(x, 2).sum()
    paddle.optimizer.Adam(0.1).minimize(loss)
    exe, main, path = started(), static.default_main_program(), str(tmp_path / "model")
    exe.run(feed={"x": X[:1]})
    before = {name: t.numpy() for name, t in main.state_dict().items()}
    static.save(main, path)
    exe.run(feed={"x": X[:1]})
    assert any((main.state_dict()[n].numpy() != a).any() for n, a in before.items())
    static.load(main, path)
    assert main.state_dict().keys() == before.keys() == static.load_program_state(path).keys()
    for name, array in before.items():
        np.testing.assert_array_equal(main.state_dict()[name].numpy(), array)
    assert len(main.state_dict("param")) == 2 and len(main.state_dict("opt")) == len(before) - 2


def test_guards_nest_and_leave_the_defaults(programs):
    outer = static.default_main_program()
    inner = static.Program()
    with static.program_guard(inner):
        static.data("x", [2]) + 1.0
        assert static.default_main_program() is inner
    assert static.default_main_program() is outer and outer.num_ops() == 0 and inner.num_ops() > 1
    paddle.disable_static()
    assert paddle.in_dynamic_mode() and (paddle.ones([2]) + 1.0).tolist() == [2.0, 2.0]


def mode_now():
    """The program that a call is written into, None if it is computed; what is on besides must fit."""
    context = current()
    written = (paddle.ones([1]) + 1.0).payload
    if isinstance(written, np.ndarray):
        assert isinstance(context.ground, Kernels) and context.constraints is context.asking is None
        return None
    program = context.ground.program
    assert list(program.global_block())[-1].result(0) is written
    assert context.constraints is context.asking.constraints is program.constraints
    return program


@pytest.fixture
def eager():
    yield
    paddle.disable_static()
    assert mode_now() is None


def test_static_mode_left_inside_of_a_guard_stays_left(eager):
    main, inner = static.Program(), static.Program()
    paddle.enable_static()
    default = static.default_main_program()
    with static.program_guard(main):
        with static.program_guard(inner):
            assert mode_now() is inner
            paddle.disable_static()
            assert mode_now() is None
        assert mode_now() is None and static.default_main_program() is main
        with static.program_guard(inner):
            assert mode_now() is inner
        assert mode_now() is None
    assert mode_now() is None and static.default_main_program() is default


def test_static_mode_entered_inside_of_a_guard_stays_entered(eager):
    main, inner = static.Program(), static.Program()
    default = static.default_main_program()
    with static.program_guard(main):
        with static.program_guard(inner):
            paddle.enable_static()
            assert mode_now() is inner
        assert mode_now() is main
    assert mode_now() is default
    paddle.disable_static()
    assert mode_now() is None


def test_static_mode_left_and_entered_again_inside_of_a_guard(eager):
    main, default = static.Program(), static.default_main_program()
    for outside in (paddle.enable_static, paddle.disable_static):
        outside()
        with static.program_guard(main):
            paddle.enable_static()
            paddle.disable_static()
            assert mode_now() is None
            paddle.enable_static()
            assert mode_now() is main
        assert mode_now() is default
        paddle.disable_static()
        assert mode_now() is None


def test_a_guard_in_eager_mode_ends_in_eager_mode(eager):
    with static.program_guard(static.Program()) as _, static.program_guard(main := static.Program()):
        assert mode_now() is main
    assert mode_now() is None
    with pytest.raises(ZeroDivisionError), static.program_guard(main):
        paddle.enable_static()
        paddle.disable_static()
        1 / 0
    assert mode_now() is None


def test_a_thread_has_a_mode_of_its_own(eager):
    def work():
        before = mode_now()
        paddle.enable_static()
        found.append((before, mode_now(), static.default_main_program() is default))
        paddle.disable_static()
        found.append(mode_now())

    found, default = [], static.default_main_program()
    paddle.enable_static()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(None, default, True), None] and mode_now() is default


@pytest.mark.parametrize("call, error, words", [
    (lambda exe, x, y: exe.run(feed={"z": X}, fetch_list=[y]), ValueError, "inputs x, got one for 'z'"),
    (lambda exe, x, y: exe.run(feed={"x": X[:1]}, fetch_list=[y]), ValueError, "x"),
    (lambda exe, x, y: exe.run(feed={"x": X[0]}, fetch_list=["nobody"]), ValueError, "'nobody', which"),
    (lambda exe, x, y: exe.run(feed={"x": X[0]}, fetch_list=[3]), TypeError, "tensors or names in fetch_list, got int"),
    (lambda exe, x, y: exe.run(feed=3, fetch_list=[y]), TypeError, "feed to be a dict of input names .* got int"),
    (lambda exe, x, y: exe.run(feed={"x": np.arange(4)}, fetch_list=[y]), TypeError, "dtype float32 for the input 'x', "
     "got int64"),
    (lambda exe, x, y: exe.run(feed={"x": X[0, :3]}, fetch_list=[y]), ValueError, "input 'x': expected 4 for dim"),
    (lambda exe, x, y: exe.run(feed={}, fetch_list=[y]), ValueError, "expected a value for the input 'x'"),
    (lambda exe, x, y: exe.run(static.Program(), fetch_list=[y]), ValueError, "tensors of this program, got one of"),
    (lambda exe, x, y: static.append_backward(3), TypeError, "expected the loss to be a tensor .* got int"),
    (lambda exe, x, y: static.append_backward(y, parameter_list=["w"]), ValueError, "names of tensors .* got 'w'"),
    (lambda exe, x, y: static.gradients(y, x), RuntimeError, "has stop_gradient=True"),
    (lambda exe, x, y: paddle.optimizer.SGD(0.1).minimize(y), ValueError, "minimize: expected a loss of one element"),
    (lambda exe, x, y: exe.run("main"), TypeError, "expected a static.Program, got str"),
    (lambda exe, x, y: static.data("x", [4]), ValueError, "has an input called 'x' already"),
    (lambda exe, x, y: static.nn.fc(x, 2), ValueError, "expected num_flatten_dims"),
    (lambda exe, x, y: static.program_guard(3).__enter__(), TypeError, "expected a static.Program, got int"),
    (lambda exe, x, y: static.default_main_program().state_dict("some"), ValueError, 'mode "all", "param" or "opt"'),
])
def test_what_is_refused(programs, call, error, words):
    x = static.data("x", [4])
    with pytest.raises(error, match=words):
        call(static.Executor(), x, x + 1.0)


def test_parameters_without_values_say_what_to_do(programs):
    y = static.nn.fc(static.data("x", [1, 4]), 2)
    with pytest.raises(KeyError, match="startup"):
        static.Executor().run(feed={"x": X[:1]}, fetch_list=[y])


def test_a_script_with_open_sizes_ends_in_silence():
    """Its types are forgotten when the modules that answer questions about sizes are gone already."""
    script = """if True:
        from minipd import enable_static, static
        enable_static()
        with static.program_guard(static.Program()):
            loss = static.nn.fc(static.data("x", [None, 4], "float32"), 3).mean()
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
