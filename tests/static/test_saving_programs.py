"""Static programs, and variables of a scope, through `paddle.save`."""

import numpy as np
import pytest

import minipd as paddle
from minipd import static
from minipd.framework.context import RankContext
from minipd.framework.errors import InputError
from minipd.framework.rank import enter, leave
from minipd.framework.tensor import Tensor


@pytest.fixture(autouse=True)
def alone():
    token = enter(RankContext())
    paddle.enable_static()
    yield
    paddle.disable_static()
    leave(token)


def test_a_program_comes_back_and_runs(tmp_path):
    x = static.data("x", [None, 4])
    y = static.nn.fc(x, 3)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    main = static.default_main_program()
    paddle.save(main, tmp_path / "main.pdmodel")
    back = paddle.load(tmp_path / "main.pdmodel")
    assert isinstance(back, static.Program) and back.to_string("exact") == main.to_string("exact")
    assert [p.name for p in back.all_parameters()] == [p.name for p in main.all_parameters()]
    feed = {"x": np.ones((2, 4), "float32")}
    last = Tensor([op for op in back.global_block() if op.name() == "pd_op.add"][-1].result(0))
    np.testing.assert_array_equal(exe.run(back, feed, fetch_list=[last])[0],
                                  exe.run(main, feed, fetch_list=[y])[0])
    (tmp_path / "main.pdmodel").write_bytes(b"minipd program\nno program")
    with pytest.raises(InputError, match="expected what save has written in .*main.pdmodel"):
        paddle.load(tmp_path / "main.pdmodel")


def test_a_variable_is_saved_as_a_tensor(tmp_path):
    scope = static.global_scope()
    scope.var("w").set(np.array([1.5, 2.5], "float32"))
    paddle.save(scope.find_var("w").get_tensor(), tmp_path / "w")
    assert paddle.load(tmp_path / "w").tolist() == [1.5, 2.5]
