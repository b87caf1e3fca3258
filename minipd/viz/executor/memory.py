"""Drawing the memory plan of a run: a box for each buffer, from when to when it is alive, where in the arena it lies.

Time runs to the right, in positions of instructions; bytes upwards.  No two boxes overlap: that is what a plan is.  The
dashed line is the bound, the most bytes that are alive at one position; no plan needs less, and the arena, the frame,
is as high as this one needs.
"""

from __future__ import annotations

from minipd.executor import Executor
from minipd.executor.layout import Buffer, Layout
from minipd.executor.preparation import results_of
from minipd.ir.value import Value
from minipd.viz.ir.program import short, type_text, value_names
from minipd.viz.style import PIECES, text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["memory"]

WIDTH, HEIGHT, NARROW, WIDE = 720.0, 300.0, 12.0, 90.0      # pixels: of the plot, of a position
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def memory(executor: Executor, title: str = "", **sizes: int) -> Svg:
    """The picture of an executor's memory plan.   sizes: of the symbolic dimensions, as in `Executor.plan`.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program = trace(lambda x: (x.exp() @ x).sum(), Meta((4, 4), dtypes.float32.np)).program
    >>> memory(Executor(program))
    <Svg 'memory plan', ...>
    """
    layout = Layout(executor.prepared, sizes)
    return _Plan(executor, layout, title or "memory plan").draw()


class _Plan:
    def __init__(self, executor: Executor, layout: Layout, title: str):
        self.layout, self.plan, self.sheet = layout, layout.plan, Sheet(title)
        self.names = value_names(executor.program.global_block())
        self.items = executor.prepared.items
        self.made = {v: (item, i) for item in self.items for i, v in enumerate(results_of(item))}
        #: inputs at the start have no buffers; two of them are enough to be seen
        self.first = max(min((b.start for b in layout.own.values()), default=0) - 2, 0)
        shown = len(self.items) - self.first
        self.column = min(max(WIDTH / max(shown, 1), NARROW), WIDE)
        self.width = self.column * shown

    def y(self, offset: float) -> float:
        return HEIGHT - offset / max(self.plan.size, 1) * HEIGHT

    def draw(self) -> Svg:
        self.sheet.rect(0, 0, self.width, HEIGHT, "card", f"the arena: {in_bytes(self.plan.size)}", radius=2)
        held: dict[int, tuple[Buffer, list[Value]]] = {}
        for value, buffer in self.layout.own.items():
            held.setdefault(id(buffer.whole()), (buffer.whole(), []))[1].append(value)
        for number, (buffer, values) in enumerate(sorted(held.values(), key=lambda b: b[0].start)):
            self.box(buffer, values, PIECES[number % len(PIECES)])
        bound = self.y(self.plan.bound)
        self.sheet.line([(-6, bound), (self.width + 6, bound)], "second dash thick",
                        tip=f"the most bytes that are alive at one position: {in_bytes(self.plan.bound)}")
        self.sheet.text(self.width + 10, bound + 4, f"bound {in_bytes(self.plan.bound)}", "second", 11)
        if self.y(self.plan.size) < bound - 12:
            self.sheet.text(self.width + 10, self.y(self.plan.size) + 4, f"arena {in_bytes(self.plan.size)}", "dim", 11)
        self.axes()
        return self.sheet.done()

    def box(self, buffer: Buffer, values: list[Value], kind: str) -> None:
        """A buffer; values that were written over one another share it, one after the other."""
        x, wide = (buffer.start - self.first) * self.column, (buffer.end - buffer.start + 1) * self.column
        top, bottom = self.y(buffer.offset + buffer.size), self.y(buffer.offset)
        made = [self.words(v) for v in values]
        tip = (f"{', then '.join(f'{words}: {self.type(v)}' for v, words in zip(values, made, strict=True))}; "
               f"{in_bytes(buffer.size)} at byte {buffer.offset}, from position {buffer.start} to {buffer.end}")
        self.sheet.rect(x + 1, top + 0.5, max(wide - 2, 1), max(bottom - top - 1, 1), kind, tip, 2)
        fitting = (words for words in (" → ".join(made), f"{made[0]} …", made[0], made[0].split()[0])
                   if text_width(words, 11) < wide - 8)
        words = next(fitting, "")
        if words and bottom - top >= 14:
            self.sheet.text(x + wide / 2, (top + bottom) / 2 + 4, words, "mid", 11)

    def type(self, value: Value) -> str:
        """`f32[8, 4]`, at the sizes of this plan."""
        return f"{type_text(value).partition('[')[0]}{list(self.layout.shape(value))}"

    def words(self, value: Value) -> str:
        """`%5 matmul`: the value's name in the program that was compiled, and what makes it."""
        item, index = self.made[value]
        results = item.origin.results()
        name = self.names.get(results[index], "") if index < len(results) else ""
        return f"{name} {short(item.origin)}".strip()

    def axes(self) -> None:
        every = max(1, round(36 / self.column))
        for item in self.items[self.first:]:
            at = (item.at - self.first + 0.5) * self.column
            what = short(item.origin)
            if text_width(what, 10) < self.column - 4:
                self.sheet.text(at, HEIGHT + 15, what, "mid dim", 10)
            if item.at % every == 0:
                self.sheet.text(at, HEIGHT + 30, str(item.at), "mid dim", 10)
        self.sheet.text(self.width / 2, HEIGHT + 48, "instruction", "mid dim", 11)
        self.sheet.text(-8, self.y(0), "0", "end dim", 11)
        self.sheet.text(-8, self.y(self.plan.size) + 8, in_bytes(self.plan.size), "end dim", 11)


def in_bytes(number: int) -> str:
    """A number of bytes, with a unit.

    >>> in_bytes(64), in_bytes(1536)
    ('64 B', '1.5 KiB')
    """
    unit, called = next((u, c) for u, c in UNITS if number >= u or u == 1)
    return f"{number / unit:.4g} {called}"
