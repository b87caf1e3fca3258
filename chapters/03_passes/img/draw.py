"""Draws the pictures of this chapter:  python chapters/03_passes/img/draw.py

before_after.svg    a program before the passes and after, from the programs themselves
critical_pair.svg   two rules at one place, two ends, and the rules that join them
match.svg           a pattern and the operations that it stands for
matches.svg         where a rule matches in a program
miss.svg            where a rule stops, and why
side_by_side.svg    a norm and a gated unit before fusion and after
safe_place.svg      where the result of a rule may go
worklist.svg        which questions two drivers ask, in which order
"""

from __future__ import annotations

from pathlib import Path

import minipd as paddle
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.passes import PassManager, PatternRewriter, RewritePattern, apply_patterns_greedily
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.show import program_of
from minipd.static import InputSpec
from minipd.viz.passes.changes import changes
from minipd.viz.passes.matches import matches
from minipd.viz.svg import Sheet, Svg

ROW = 30            # from one statement to the next, in pixels


def statement(sheet: Sheet, x: float, y: float, words: str, kind: str = "op", note: str = "", width: float = 200
              ) -> None:
    """A statement in a box, and a note at its right."""
    sheet.rect(x, y, width, ROW - 6, kind).text(x + 10, y + 16, words, "mono")
    if note:
        sheet.text(x + width + 10, y + 16, note, "dim")


# ------------------------------------------------------------------------------------------------- before, after
def wasteful() -> Program:
    """The program of the lesson's first section."""
    def f(x):
        half = paddle.full([2], 3.0) * 0.5
        unused = x.tanh()  # noqa: F841
        return x.exp() * half + x.exp()
    return trace(f, InputSpec([2], "float32", "x")).program


def lines(program: Program) -> list[str]:
    """Each operation as `%3 = multiply(%1, %2)`."""
    number: dict = {}
    shown = []
    for op in program.global_block():
        for result in op.results():
            number[result] = f"%{len(number)}"
        left = ", ".join(number[r] for r in op.results())
        operands = ", ".join(number[v] for v in op.operands_source())
        value = f" {op.attributes['value'].value}" if "value" in op.attributes else ""
        name = op.name().partition(".")[2]
        shown.append(f"{left} = {name}({operands}){value}" if left else f"{name}({operands})")
    return shown


def before_after() -> Svg:
    """The program as it was traced, with what is wasted marked, and what the three passes leave."""
    program = wasteful()
    before = lines(program)
    manager = PassManager()
    for name in ("constant_folding", "common_subexpression_elimination", "dead_code_elimination"):
        manager.add_pass(f"{name}_pass")
    manager.run(program)
    notes = {1: ("input", ""), 2: ("input", ""), 3: ("input", "always 1.5"), 4: ("comm", "nobody reads it"),
             7: ("fusion", "the same as %5")}
    sheet = Sheet("A program before the passes and after")
    sheet.text(0, 0, "as traced", "bold", 14).text(380, 0, "after three passes", "bold", 14)
    for i, line in enumerate(before):
        statement(sheet, 0, 14 + i * ROW, line, *notes.get(i, ("op", "")))
    for i, line in enumerate(lines(program)):
        statement(sheet, 380, 14 + i * ROW, line, "output" if i in (1, 2) else "op")
    return sheet.done()


# --------------------------------------------------------------------------------------------------------- match
def match() -> Svg:
    """The pattern of x * sigmoid(x), a program in which it stands, and one in which it does not."""
    sheet = Sheet("A pattern, a match, and no match")
    for x, title, name, other, last, note in (
            (0, "the pattern", "x", "", "op", "matching starts at the bottom"),
            (260, "a * sigmoid(a): a match", "a", "", "output", "x is a, on both ways: it agrees"),
            (520, "a * sigmoid(b): none", "a", "b", "comm", "x is a on the left, then b: it does not")):
        sheet.text(x, 0, title, "bold", 14)
        statement(sheet, x, 20, name, "input", width=50)
        statement(sheet, x + 90, 90, "sigmoid", width=84)
        statement(sheet, x + 30, 160, "multiply", last, width=92)
        if other:
            statement(sheet, x + 107, 20, other, "input", width=50)
            sheet.line([(x + 132, 44), (x + 132, 89)], arrow=True)
        else:
            sheet.line([(x + 40, 44), (x + 120, 89)], arrow=True)
        sheet.line([(x + 25, 44), (x + 55, 159)], arrow=True).line([(x + 132, 114), (x + 95, 159)], arrow=True)
        sheet.text(x, 208, note, "dim")
    return sheet.done()


@drr()
class Silu:
    def source(x):
        return x * ops.sigmoid(x)

    def result(x):
        return ops.silu(x)


def in_place() -> Svg:
    """The rule of silu in a program where it matches once."""
    return matches(program_of(lambda a, b: a * F.sigmoid(a) + b * F.sigmoid(a), "f32[2]", "f32[2]"), Silu)


def miss() -> Svg:
    """The rule of silu where it does not match."""
    return matches(program_of(lambda a, b: a * F.sigmoid(b), "f32[2]", "f32[2]"), Silu)


def side_by_side() -> Svg:
    """The feed-forward part of a Llama's layer."""
    def layer(x, w, gate, up):
        h = F.rms_norm(x, [8], w)
        g = h @ gate
        return g * F.sigmoid(g) * (h @ up)
    return changes(program_of(layer, "f32[4, 8]", "f32[8]", "f32[8, 16]", "f32[8, 16]"),
                   ["add_norm_fuse_pass", "silu_fuse_pass", "swiglu_fuse_pass"])


# ------------------------------------------------------------------------------------------------------ worklist
class Unread(RewritePattern):
    """A tanh that nobody reads goes.  asked: how many of the chain stood before it, and whether it went."""

    roots = ("pd_op.tanh",)

    def __init__(self) -> None:
        self.asked: list[tuple[int, bool]] = []

    def match_and_rewrite(self, op, rewriter):
        place, before = 0, op.operand_source(0).get_defining_op()
        while before.name() == "pd_op.tanh":
            place, before = place + 1, before.operand_source(0).get_defining_op()
        goes = op.result(0).use_empty()
        self.asked.append((place, goes))
        if goes:
            rewriter.erase_op(op)
        return goes


def sweeps(program: Program, rule: Unread) -> None:
    """The driver of the lesson that goes over the program again and again."""
    rewriter, found = PatternRewriter(program), True
    while found:
        found = False
        for op in list(program.walk()):
            if op.name() in rule.roots and op not in rewriter.erased:
                rewriter.start(op)
                found |= rule.match_and_rewrite(op, rewriter)


def worklist() -> Svg:
    """A chain of six operations that nobody reads, and two drivers that find it out."""
    def chain(x):
        y = x
        for _ in range(6):
            y = y.tanh()
        return x.exp()

    sheet = Sheet("Which questions two drivers ask, in which order")
    for column, (title, drive) in enumerate((("sweep after sweep", sweeps), (
            "with a list of work", lambda program, rule: apply_patterns_greedily(program, [rule])))):
        rule, left = Unread(), 60 + column * 440.0
        drive(program_of(chain, "f32[2]"), rule)
        sheet.text(left, 0, f"{title}: {len(rule.asked)} questions", "bold", 14)
        for i in range(6):
            sheet.text(left - 60, 26 + 20 * i, f"tanh {i + 1}", "mono dim")
            sheet.line([(left, 22 + 20 * i), (left + 16 * 21, 22 + 20 * i)], "wire dash")
        for n, (place, goes) in enumerate(rule.asked):
            sheet.dot(left + 8 + 16 * n, 22 + 20 * place, 6 if goes else 4, "way" if goes else "dim")
    sheet.text(0, 158, "from left to right, a dot for each question; green: nobody reads it, so it goes", "dim")
    return sheet.done()


# ------------------------------------------------------------------------------------------------- critical pair
def critical_pair() -> Svg:
    """exp(x) / exp(y) and what becomes of it."""
    sheet = Sheet("A critical pair, and the rules that join its two ends")
    boxes = {"peak": (190, 0, "exp(x) / exp(y)", "focus"), "left": (0, 90, "exp(x) * exp(-y)", "op"),
             "between": (0, 180, "exp(x + (-y))", "op"), "right": (380, 180, "exp(x - y)", "output")}
    for x, y, words, kind in boxes.values():
        statement(sheet, x, y, words, kind, width=150)
    sheet.line([(230, 24), (80, 89)], arrow=True).text(40, 62, "Quotient", "dim")
    sheet.line([(300, 24), (455, 179)], arrow=True).text(390, 92, "QuotientOfPowers", "dim")
    sheet.line([(75, 114), (75, 179)], "way", arrow=True).text(84, 152, "ProductOfPowers", "way")
    sheet.line([(150, 192), (379, 192)], "way", arrow=True).text(220, 186, "PlusMinus", "way")
    words = "two rules match at one place, and lead to two ends; the green ones lead on from the worse"
    sheet.text(0, 240, words, "dim")
    return sheet.done()


# ---------------------------------------------------------------------------------------------------- safe place
#: title, statements, which of them are matched, before which the result goes, why
PLACES = (
    ("before the reader", ("x = data", "p = exp(x)", "u = abs(p)", "q = tanh(x)"), {1, 3}, 1, "u reads p"),
    ("behind the input", ("x = data", "p = exp(x)", "y = abs(x)", "t = tanh(x)", "q = t + y"), {1, 3, 4}, 3,
     "the result reads y"),
    ("no place", ("x = data", "p = exp(x)", "u = square(p)", "y = abs(x)", "t = tanh(x)", "q = t + y"), {1, 4, 5}, None,
     "behind y and before u is nowhere"),
)


def safe_place() -> Svg:
    """The three programs of the lesson; what the rule replaces is yellow."""
    sheet = Sheet("Where the result of a rule may go")
    for column, (title, statements, matched, place, note) in enumerate(PLACES):
        x, y = column * 250.0, 14.0
        sheet.text(x, 0, title, "bold", 14)
        for i, line in enumerate(statements):
            if i == place:
                sheet.line([(x, y + 5), (x + 170, y + 5)], "way thick").text(x + 176, y + 9, "here", "way")
                y += 16
            statement(sheet, x, y, line, "fusion" if i in matched else "op", width=170)
            y += ROW
        sheet.text(x, y + 12, note, "dim")
    return sheet.done()


def pictures() -> dict[str, Svg]:
    """File name -> picture."""
    return {"before_after.svg": before_after(), "critical_pair.svg": critical_pair(), "match.svg": match(),
            "matches.svg": in_place(), "miss.svg": miss(), "side_by_side.svg": side_by_side(),
            "safe_place.svg": safe_place(), "worklist.svg": worklist()}


if __name__ == "__main__":
    for name, picture in pictures().items():
        picture.save(Path(__file__).with_name(name))
