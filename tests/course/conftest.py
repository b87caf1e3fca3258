"""A chapter of two small exercises to try the machinery on: a function and a method."""

from pathlib import Path

import pytest

from minipd import FLOORS
from tools.course.chapter import read_chapter

TOML = '''
number = 1
title = "A chapter to test with"
opens = OPENS

[[exercise]]
name = "unbroadcast"
target = "minipd.ops.broadcast:axes_to_sum"
title = "Undo a broadcast"
read = "README.md#broadcasting"
minutes = 15

[[exercise]]
name = "rule"
target = "minipd.ops.math:Multiply.vjp_x"
title = "The gradient of a product"
read = "README.md#gradients"
minutes = 5
task = "Return the gradient of x * y for x."
'''

CHECKS = {
    "unbroadcast": '''
import minipd as paddle
from minipd.ops.broadcast import axes_to_sum
from tools.course.checking import check

def test_a_row():
    check((0,), axes_to_sum((2, 3), (3,)), "axes_to_sum((2, 3), (3,))")

def test_a_gradient():
    x = paddle.ones([3])
    x.stop_gradient = False
    (x + paddle.ones([2, 3])).sum().backward()
    check([2.0, 2.0, 2.0], x.grad, "the gradient of x, of shape [3], in x + y, y of shape [2, 3]")
''',
    "rule": '''
import minipd as paddle
from tools.course.checking import check

def gradient():
    x = paddle.to_tensor([3.0], stop_gradient=False)
    (x * 5.0).sum().backward()
    return x.grad

def test_a_gradient():
    check([5.0], lambda: gradient(), "the gradient of x = [3.0] in x * 5")
'''}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The chapter's folder."""
    folder = tmp_path / "01_demo"
    (folder / "checks").mkdir(parents=True)
    (folder / "chapter.toml").write_text(TOML.replace("OPENS", str(list(FLOORS[0].opens))))
    (folder / "README.md").write_text("# Demo\n## Broadcasting\n## Gradients\n")
    for name, text in CHECKS.items():
        (folder / "checks" / f"test_{name}.py").write_text(text)
    return folder


@pytest.fixture
def lesson(folder):
    return read_chapter(folder)
