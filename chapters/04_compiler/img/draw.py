"""Draws the pictures of this chapter:  python chapters/04_compiler/img/draw.py

roofline.svg        what a machine can do, by the flops for each byte
bytes.svg           what each operator of a softmax reads and writes, and what one kernel does; counted by the library
cycle.svg           two groups that must not be united
groups.svg          the same groups, by the library's own drawer
block.svg           what a ScheduleBlock says, and what the loops around it say
two_steps.svg       a sum down the columns, in chunks
softmax_loops.svg   the scheduled loops of a softmax, likewise
rms_norm_steps.svg  the schedule of an RMSNorm, primitive by primitive, likewise
"""

from __future__ import annotations

import math
from pathlib import Path

import minipd as paddle
from minipd import viz
from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.frontend.traffic import bytes_of_op
from minipd.cinn.ir.ast import Function
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import schedule
from minipd.framework.tensor import Tensor
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


def norm(x: Tensor, w: Tensor) -> Tensor:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def norm_steps() -> Svg:
    """How its one kernel is scheduled."""
    program = trace(norm, InputSpec([64, 288], "float32", "x"), InputSpec([288], "float32", "w")).program
    prepare(program)
    group, = build_groups(program)
    lowered = lower(group, "rms_norm")
    return viz.steps(lowered, schedule(lowered).trace, "The schedule of an RMSNorm")


def block(x: Tensor, w: Tensor) -> Tensor:
    """Two groups, and a matrix product between them."""
    a = x.exp() * 2.0
    return (paddle.matmul(a, w) + a).tanh() * 3.0


def block_groups() -> Svg:
    program = trace(block, InputSpec([6, 10], "float32", "x"), InputSpec([10, 10], "float32", "w")).program
    return viz.groups(program, "Two groups and a matrix product")


def cells(sheet: Sheet, x: float, y: float, rows: int, columns: int, kinds: dict[int, str], size: int = 20) -> None:
    """A grid of elements; kinds: the colours of rows that have one."""
    for i in range(rows):
        for j in range(columns):
            sheet.rect(x + size * j, y + size * i, size - 2, size - 2, kinds.get(i, "op"))


def one_block() -> Svg:
    """The sum of the rows of [4, 6], at vi = 1."""
    sheet = Sheet("A block and the loops around it")
    sheet.rect(-20, 0, 190, 110, "region", radius=6).text(-8, 20, "for (i_sum_1, 0, 4)", "mono")
    sheet.rect(-8, 32, 166, 66, "region", radius=6).text(4, 52, "for (j_sum_1, 0, 6)", "mono")
    sheet.text(75, 130, "the order", "dim mid")
    sheet.line([(172, 16), (246, 16)], "first thick", arrow=True).text(208, 8, "vi: S", "first mid")
    sheet.line([(160, 48), (246, 48)], "second thick", arrow=True).text(208, 40, "vj: R", "second mid")
    sheet.rect(250, 0, 250, 110, "fusion", radius=6).text(262, 20, "ScheduleBlock(sum_1)", "mono")
    sheet.text(262, 52, "sum_1[vi] += exp_0[vi, vj]", "mono")
    sheet.text(375, 130, "what one element is", "dim mid")
    cells(sheet, 540, 10, 4, 6, {1: "p1"})
    cells(sheet, 700, 10, 4, 1, {1: "p0"})
    sheet.line([(662, 39), (696, 39)], arrow=True)
    sheet.text(600, 106, "exp_0", "mono mid").text(709, 106, "sum_1", "mono mid")
    sheet.text(640, 130, "vj is folded, each vi has an element", "dim mid")
    return sheet.done()


def two_steps() -> Svg:
    """Eight rows in four chunks: what each adds up by itself, and what is combined."""
    sheet = Sheet("A sum down the columns, in two steps")
    colours = ("p0", "p1", "p2", "p3")
    cells(sheet, 0, 0, 8, 6, {i: colours[i // 2] for i in range(8)})
    cells(sheet, 220, 40, 4, 6, dict(enumerate(colours)))
    cells(sheet, 440, 70, 1, 6, {0: "output"})
    for k in range(4):
        sheet.line([(122, 20 + 40 * k), (216, 49 + 20 * k)], arrow=True)
    sheet.line([(342, 79), (436, 79)], arrow=True)
    for x, words in ((59, "x, in chunks of two rows"), (279, "sum_1_rf: one row for each"), (499, "sum_1")):
        sheet.text(x, 180, words, "dim mid")
    sheet.text(169, 8, "at once", "first mid").text(389, 68, "in order", "second mid")
    return sheet.done()


#: of one core (benchmarks/README.md): what a matrix product reaches, and what RMSNorm's 134 MB in 10.4 ms come to
GIGAFLOPS, GIGABYTES = 115, 13


def roofline() -> Svg:
    """Attainable flops over flops for each byte, both in powers of ten, and where three ways of computing are."""
    sheet = Sheet("Flops for each byte, and what one core can do with them")

    def at(intensity: float, speed: float) -> tuple[float, float]:
        return 60 + 120 * (math.log10(intensity) + 1), 220 - 90 * math.log10(speed)
    edge = GIGAFLOPS / GIGABYTES
    sheet.line([at(0.1, 200), at(0.1, 1), at(1000, 1)])
    for x in (0.1, 1, 10, 100, 1000):
        sheet.text(at(x, 1)[0], 238, f"{x:g}", "dim mid")
    for y in (1, 10, 100):
        sheet.text(52, at(0.1, y)[1] + 4, str(y), "dim end")
    sheet.text(at(10, 1)[0], 256, "flops for each byte", "dim mid").text(0, 4, "GFLOP/s", "dim")
    sheet.line([at(0.1, 0.1 * GIGABYTES), at(edge, GIGAFLOPS), at(1000, GIGAFLOPS)], "first thick")
    sheet.text(at(30, 1)[0], at(1, 150)[1], f"arithmetic: {GIGAFLOPS} GFLOP/s", "first")
    sheet.text(at(2.6, 1)[0], at(1, 25)[1], f"memory: {GIGABYTES} GB/s", "first")
    points = ((4 / 28, "RMSNorm, operator by operator", True), (4 / 8, "RMSNorm, one kernel", True),
              (4096 / 6, "matrix product", False))
    for intensity, name, right in points:
        x, y = at(intensity, min(GIGAFLOPS, intensity * GIGABYTES))
        sheet.dot(x, y, 5, "kernel")
        if right:
            sheet.text(x + 10, y + 14, name)
        else:
            sheet.text(x, y + 20, name, "mid")
    return sheet.done()


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
    return {"roofline.svg": roofline(), "bytes.svg": traffic(), "cycle.svg": cycle(), "groups.svg": block_groups(),
            "block.svg": one_block(), "rms_norm_steps.svg": norm_steps(), "two_steps.svg": two_steps(),
            "softmax_loops.svg": viz.loops(softmax_loops(), "The scheduled loops of a softmax")}


if __name__ == "__main__":
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))
