"""full_graph=True: the text of a traced tensor is refused to the user's code, and had by messages and debuggers."""

import dataclasses
import io
import logging
import pdb
import pickle
import pprint
import string
from collections import namedtuple

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Held:
    it: object


def x():
    return paddle.to_tensor([1.0, 10.0], dtype="float64")


ASKED = {
    "str": lambda y: str(y), "f-string": lambda y: f"{y}", "with a conversion": lambda y: f"{y!r}",
    "percent": lambda y: "%s" % y, "percent r": lambda y: "%r" % y, "repr": lambda y: repr(y),       # noqa: UP031
    "format": lambda y: "{}".format(y), "of a list": lambda y: str([y]), "of a tuple": lambda y: f"{Pair(y, 1)}",  # noqa: UP032
    "of a dataclass": lambda y: str(Held(y)), "pprint": lambda y: pprint.pformat(y),
    "a template": lambda y: string.Template("$y").substitute(y=y), "map": lambda y: ",".join(map(str, [y, y])),
    "print": lambda y: print(f"y is {y}"), "print of a list": lambda y: print([y], Held(y)),
}


@pytest.mark.parametrize("how", ASKED)
def test_the_text_of_a_traced_tensor(how):
    def f(v):
        ASKED[how](v * 2.0)
        return v
    with pytest.raises(TypeError, match=r"the text of a tensor: expected a tensor with values, got .*pd_op.multiply.*"
                                        r"asked for at .*test_text.py:\d+: `.*lambda y.*print\(\"words\", x\) works"):
        to_static(f)(x())
    to_static(f, full_graph=False)(x())


@pytest.mark.filterwarnings("ignore:to_static. open")
def test_files_get_no_words_that_stand_for_a_value(tmp_path):
    def f(v, path):
        y = v * 2.0
        with open(path, "w") as file:
            file.write(str(y))
        return y
    with pytest.raises(TypeError, match=r"test_text.py:\d+: `file.write\(str\(y\)\)`.*full_graph=False"):
        to_static(f)(x(), str(tmp_path / "a"))
    to_static(f, full_graph=False)(x(), str(tmp_path / "b"))
    assert (tmp_path / "b").read_text() == str(x() * 2.0)


def test_print_into_a_file_logging_and_pickle():
    log, file = logging.getLogger("minipd.test_text"), io.StringIO()
    for f, message in (
            (lambda v: print("v", v, file=file), "print: expected a traced tensor to be printed to stdout, got file="),
            (lambda v: log.warning("v is %s", v), "the text of a tensor"),
            (lambda v: logging.warning("v is %s", v), "the text of a tensor"),
            (lambda v: pickle.dumps(v), "pickle: expected a tensor with values")):
        with pytest.raises(TypeError, match=message):
            to_static(f)(x())
    assert file.getvalue() == ""


def test_print_is_a_part_of_the_program(capsys):
    compiled = to_static(lambda v: (print("v is", v), v)[1])
    compiled(x()), compiled(x() * 2.0)
    assert [line for line in capsys.readouterr().out.splitlines() if "data" in line] == [
        "  - data: [1.000000 10.000000]", "  - data: [2.000000 20.000000]"]


@pytest.mark.parametrize("full_graph", [True, False])
def test_messages_of_assert_and_raise_may_tell(full_graph):
    def asserting(v):
        assert (v > 0).all(), f"expected positive numbers, got {v}"
        return v

    def raising(v):
        if (v < 0).any():
            raise ValueError(f"expected positive numbers, got {v}")
        return v
    for f, errors in ((asserting, (AssertionError, ValueError) if full_graph else (AssertionError,)),
                      (raising, (ValueError,))):
        compiled = to_static(f, full_graph=full_graph)
        assert compiled(x()).tolist() == [1.0, 10.0]
        for error in errors:            # compiled, it is what Python raises, and what Paddle does
            with pytest.raises(error, match="expected positive numbers, got"):
                compiled(-x())


def test_a_debugger_may_ask():
    told = io.StringIO()

    def f(v):
        y = v * 2.0
        debugger = pdb.Pdb(stdin=io.StringIO("p y\nprint(y)\nc\n"), stdout=told, nosigint=True, readrc=False)
        debugger.set_trace()
        return y
    before = __import__("sys").gettrace()
    try:
        to_static(f)(x())
    finally:
        __import__("sys").settrace(before)
    assert "Value(define_op_name=pd_op.multiply" in told.getvalue() and "TypeError" not in told.getvalue()


def test_errors_of_ours_tell():
    def f(v):
        return paddle.reshape(v, object())
    with pytest.raises(TypeError) as caught:
        to_static(f)(x())
    assert "the text of a tensor" not in str(caught.value)


def test_static_mode_prints_as_paddle_does():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            y = paddle.static.data("a", [2], "float32") * 2.0
            assert f"{y}" == str(y) == repr(y) and str(y).startswith("Value(define_op_name=pd_op.")
    finally:
        paddle.disable_static()


def test_the_text_of_a_tensor_from_outside_is_guarded():
    scale = paddle.to_tensor([2.0])

    def f(v):
        return v * len(str(scale))
    compiled = to_static(f)
    for value in (2.0, 1234567.0, 2.0):
        scale.set_value(np.array([value], "float32"))
        assert compiled(x()).tolist() == f(x()).tolist()
