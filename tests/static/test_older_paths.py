"""Names of static mode where older scripts look for them, and unique names."""

import pytest

import minipd as paddle
from minipd import base, static, utils


def test_older_paths_are_the_same_things():
    for name in ("program_guard", "Executor", "Program", "default_main_program", "scope_guard", "append_backward"):
        assert getattr(base, name) is getattr(static, name)
    assert base.unique_name is utils.unique_name and base.core._Scope is static.Scope
    assert not paddle.framework.in_pir_mode() and paddle.framework.in_dynamic_or_pir_mode()
    paddle.enable_static()
    try:
        with paddle.pir_utils.IrGuard():
            assert paddle.framework.in_pir_mode() and paddle.framework.use_pir_api()
    finally:
        paddle.disable_static()


def test_names_are_counted_anew_inside_of_a_guard_and_go_on_behind_it():
    with utils.unique_name.guard():
        assert [utils.unique_name.generate("fc") for _ in range(2)] == ["fc_0", "fc_1"]
        with utils.unique_name.guard("student_"):
            assert utils.unique_name.generate("fc") == "student_fc_0"
            assert paddle.nn.Linear(1, 1).weight.name == "student_student_linear_0.w_0"        # as in Paddle
        assert utils.unique_name.generate("fc") == "fc_2"
        before = utils.unique_name.switch()
        assert utils.unique_name.generate("fc") == "fc_0"
        utils.unique_name.switch(before)
        assert utils.unique_name.generate("fc") == "fc_3"
    with pytest.raises(TypeError, match="expected a prefix, or counters .*, got 3"), utils.unique_name.guard(3):
        pass


def test_versions_are_those_of_the_paddle_that_is_followed():
    utils.require_version("3.3", "3.3.1")
    for call, words in ((("3.4",), "at least 3.4; minipd follows Paddle 3.3.1"), (("1.0", "3.2"), "at most 3.2")):
        with pytest.raises(RuntimeError, match=words):
            utils.require_version(*call)
    with pytest.raises(ValueError, match="a version such as"):
        utils.require_version("three")
