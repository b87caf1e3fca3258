"""Draws the pictures of this chapter:  python chapters/04_compiler/img/draw.py

bytes.svg           what each operator of a softmax reads and writes, and what one kernel does; counted by the library
cycle.svg           two groups that must not be united
softmax_loops.svg   the scheduled loops of a softmax, by the library's own drawer
"""

from __future__ import annotations

from pathlib import Path

from minipd import viz
from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.frontend.traffic import bytes_of_op
from minipd.cinn.ir.ast import Function
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import schedule
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from minipd.viz.svg import Sheet, Svg


def softmax(*shape: int) -> Program:
    """The program of a softmax, in small operators."""
    program = trace(F.softmax, InputSpec(list(shape), "float32", "x")).program
    prepare(program)
    return program


def softmax_loops() -> Function:
    """The function of its one group, scheduled."""
    group, = build_groups(softmax(64, 288))
    return finalize(schedule(lower(group, "softmax")).function)


def traffic() -> Svg:
    """A bar for each operator, as long as the bytes that it moves, and one for the kernel."""
    program = softmax(64, 288)
    bars = [(op.name().partition(".")[2], bytes_of_op(op), "p0") for op in program.walk() if bytes_of_op(op)]
    one_by_one = bytes_moved(program)
    build_groups(program)
    bars += [("one by one", one_by_one, "p1"), ("as one kernel", bytes_moved(program), "p2")]
    sheet = Sheet("Bytes that a softmax of f32[64, 288] moves")
    for i, (name, count, colour) in enumerate(bars):
        y = 26 * i + (12 if i >= len(bars) - 2 else 0)
        width = count / 1000
        sheet.text(100, y + 13, name, "mono end").rect(110, y, width, 18, colour)
        sheet.text(116 + width, y + 13, f"{count:,}", "dim")
    return sheet.done()


def cycle() -> Svg:
    """exp, multiply -> matmul -> add, tanh, with an edge from the first group to the second."""
    sheet = Sheet("A union with a cycle")
    sheet.rect(0, 10, 130, 130, "fusion", radius=8).text(65, 156, "group A", "dim mid")
    sheet.rect(330, 10, 130, 130, "fusion", radius=8).text(395, 156, "group B", "dim mid")
    for x, y, name, kind in ((20, 30, "exp", "op"), (20, 95, "multiply", "op"), (185, 95, "matmul", "control"),
                             (350, 95, "add", "op"), (350, 30, "tanh", "op")):
        sheet.rect(x, y, 90, 26, kind).text(x + 45, y + 17, name, "mono mid")
    sheet.line([(65, 56), (65, 94)], arrow=True).line([(395, 94), (395, 57)], arrow=True)
    sheet.line([(110, 108), (184, 108)], "second thick", arrow=True)
    sheet.line([(275, 108), (349, 108)], "second thick", arrow=True)
    sheet.line([(110, 100), (150, 50), (310, 50), (349, 100)], "way", arrow=True)
    sheet.text(230, 42, "a direct edge is what fusion is for", "way mid")
    sheet.text(230, 146, "a path through somebody else", "second mid")
    return sheet.done()


def pictures() -> dict[str, Svg]:
    """File name -> picture."""
    return {"bytes.svg": traffic(), "cycle.svg": cycle(),
            "softmax_loops.svg": viz.loops(softmax_loops(), "The scheduled loops of a softmax")}


if __name__ == "__main__":
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))
