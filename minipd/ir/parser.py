"""Reading text back: the exact style here, Paddle's in `minipd.ir.paddle.text`.

A recursive-descent reader over the text, without a separate list of tokens: what a word means depends on where it
stands (`8x16xf32`, `undefined:0`).  Regions are read with a stack of open blocks, so depth of nesting costs no frames.
Errors name line and column, what was expected and what stands there.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

from minipd.framework.constraints import Constraint
from minipd.framework.dim import parse_dim, parse_relation
from minipd.ir.attributes import KINDS, ArrayAttribute, Attribute, BoolAttribute, StrAttribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.types import BY_SPELLING, NULL_TYPE, TYPES, Type
from minipd.ir.value import NULL_VALUE, Value

__all__ = ["ParseError", "parse"]

DIM = r"\d+|[A-Z][A-Z0-9]*"


#: how deep brackets nest: arrays of arrays, vectors of vectors.  (Regions nest without end.)
DEEPEST = 100


class ParseError(ValueError):
    """The text is no program.  `line` and `column` count from 1."""

    def __init__(self, text: str, pos: int, expected: str, got: str | None = None):
        self.line = text.count("\n", 0, pos) + 1
        self.column = pos - text.rfind("\n", 0, pos)
        rest = text[pos:].split("\n", 1)[0]
        got = got or (repr(rest[:30] + ("..." if len(rest) > 30 else "")) if rest else
                      "the end of the line" if pos < len(text) else "the end of the text")
        super().__init__(f"{self.line}:{self.column}: expected {_short(expected)}, got {_short(got)}")


def _short(words: str) -> str:
    """What is to be said, without the middle of what is too long to be read."""
    return words if len(words) <= 1000 else f"{words[:500]} ... {words[-100:]}"


def parse(text: str, style: str = "exact") -> Program:
    """The program that prints as `text`.

    style: "exact", ours; or "paddle", the text that the real Paddle prints.  That gives a program in Paddle's form,
    which prints as the text it was read from; `minipd.ir.paddle.from_paddle` makes it one of ours.

    >>> from minipd.ir.program import Program
    >>> parse("{\\n}\\n") == Program()
    True

    Raises: ParseError with line and column.
    """
    if style == "exact":
        try:
            return Parser(text).program()
        except ParseError as error:
            if "stop_gradient:[" in text:       # as Paddle spells it
                error.add_note('This looks like the text that Paddle prints: parse(text, "paddle") reads it.')
            raise
    if style != "paddle":
        raise ValueError(f'parse: expected style "exact" or "paddle", got {style!r}')
    from minipd.ir.paddle.text import PaddleParser  # a reader of its own, which is a subclass of the one here
    parser = PaddleParser(text)
    try:
        return parser.program()
    except RecursionError:                  # the spellings of arrays are read by functions that call themselves
        raise parser.error("brackets that nest less deeply") from None


class Parser:
    """The text and how far it has been read.  Types and attributes of other floors read theirs with these methods."""

    def __init__(self, text: str):
        self.text, self.pos, self.depth = text, 0, 0
        self.values: dict[str, Value] = {}
        self.types: dict[str, Type] = {}    # what has been read before: a program has few types, many times

    # ----------------------------------------------------------------------------------------------- characters
    def error(self, expected: str, got: str | None = None, pos: int | None = None) -> ParseError:
        return ParseError(self.text, self.pos if pos is None else pos, expected, got)

    def space(self) -> None:
        if self.text[self.pos:self.pos + 1].isspace():
            self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]

    def accept(self, literal: str) -> bool:
        """Read `literal` if it comes next."""
        if not self.text.startswith(literal, self.pos):
            self.space()
            if not self.text.startswith(literal, self.pos):
                return False
        self.pos += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            raise self.error(repr(literal))

    def match(self, pattern: str, what: str) -> str:
        """Read what fits the regular expression `pattern`; `what` says it in words."""
        self.space()
        match = _compiled(pattern).match(self.text, self.pos)
        if match is None:
            raise self.error(what)
        self.pos = match.end()
        return match.group()

    def word(self, what: str, meaning: Callable[[str], Any] = str) -> Any:
        """Read a word and what `meaning` makes of it; whatever that raises becomes a ParseError."""
        return self._converted(r"[A-Za-z_][A-Za-z0-9_.]*", what, meaning)

    def _converted(self, pattern: str, what: str, meaning: Callable[[str], Any]) -> Any:
        self.space()
        start = self.pos
        text = self.match(pattern, what)
        try:
            return meaning(text)
        except KeyError:
            raise self.error(what, repr(text), start) from None
        except (TypeError, ValueError) as error:
            raise self.error(what, f"{text!r} ({error})", start) from None

    def until(self, end: str) -> str:
        """The raw text up to `end`, which is not read."""
        stop = self.text.find(end, self.pos)
        if stop < 0:
            raise self.error(repr(end))
        text, self.pos = self.text[self.pos:stop], stop
        return text

    def sequence(self, opening: str, item: Callable[[], Any], closing: str) -> list:
        """Items between brackets, with commas between them."""
        self.expect(opening)
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"at most {DEEPEST} brackets inside of one another")
        items = self.items(item, closing)
        self.expect(closing)
        self.depth -= 1
        return items

    def items(self, item: Callable[[], Any], closing: str) -> list:
        """Items with commas between them, up to `closing`, which is not read."""
        found: list = []
        self.space()
        while not self.text.startswith(closing, self.pos):
            if found:
                self.expect(",")
            found.append(item())
            self.space()
        return found

    # --------------------------------------------------------------------------------------------- literals
    def string(self) -> str:
        return self._converted(r'"(?:[^"\\\n]|\\.)*"', "a string in double quotes", json.loads)

    def integer(self) -> int:
        start, digits = self.pos, self.match(r"-?\d+", "an integer")
        if len(digits) > 20:                # 64 bits have fewer, and Python converts only so many
            raise self.error("an integer of 64 bits", digits[:60], start)
        return int(digits)

    def number(self) -> float:
        return self._converted(r"[-+0-9.a-z]+", "a number", float)

    def dim(self) -> Any:
        """An int, or arithmetic on symbolic dimensions."""
        what = "a dimension such as 16, S0 or 2*S0+1"
        self.space()
        start, text = self.pos, self.arithmetic()
        if not text:
            raise self.error(what)
        try:
            return parse_dim(text)
        except ValueError as error:
            raise self.error(what, f"{text[:60]!r} ({error})", start) from None

    def arithmetic(self, closed: bool = False) -> str:
        """The text from here that may be arithmetic on dimensions, with commas inside of parentheses only.
        closed: it ends where the parenthesis does with which it begins."""
        depth, end = 0, self.pos
        while end < len(self.text) and re.match("[-+*/0-9A-Za-z(),]", self.text[end]):
            depth += (self.text[end] == "(") - (self.text[end] == ")")
            if depth < 0 or depth == 0 and self.text[end] == ",":
                break
            end += 1
            if closed and depth == 0:
                break
        text, self.pos = self.text[self.pos:end], end
        return text

    # ------------------------------------------------------------------------------------- types, attributes
    def type(self) -> Type:
        self.space()
        start = self.pos
        plain = _PLAIN_TENSOR.match(self.text, start)
        if plain is not None and (known := self.types.get(plain.group())) is not None:
            self.pos = plain.end()
            return known
        word = self.match(r"[A-Za-z_][A-Za-z0-9_.]*|<<NULL TYPE>>", "a type such as tensor<2x3xf32>")
        if word not in TYPES:
            raise self.error(f"a type, one of {', '.join(TYPES)}", repr(word), start)
        found = TYPES[word].parse(self, word)
        if plain is not None:
            self.types[plain.group()] = found
        return found

    def shape_and_dtype(self) -> tuple[tuple, Any]:
        """`<8x16xf32`, without the closing bracket; a compound dimension stands in parentheses."""
        self.expect("<")
        shape: list = []
        while True:
            if self.text.startswith("(", self.pos):
                start = self.pos
                text = self.arithmetic(closed=True)
                try:
                    shape.append(parse_dim(text))
                except ValueError as error:
                    raise self.error("a dimension", str(error), start) from None
            elif _compiled(DIM).match(self.text, self.pos):
                shape.append(self._converted(DIM, "a dimension", parse_dim))
            else:
                what = f"a dtype, one of {', '.join(BY_SPELLING)}"
                return tuple(shape), self._converted(r"[a-z0-9]+", what, BY_SPELLING.__getitem__)
            self.expect("x")

    def attribute(self) -> Attribute:
        self.space()
        here = self.text[self.pos:self.pos + 1]
        if here == '"':
            return StrAttribute(self.string())
        if here == "[":
            return ArrayAttribute(tuple(self.sequence("[", self.attribute, "]")))
        start = self.pos
        kind = self.match("[A-Za-z_][A-Za-z0-9_.]*", 'an attribute such as i64(3), true, "text" or [...]')
        if kind in ("true", "false"):
            return BoolAttribute(kind == "true")
        if kind not in KINDS:
            raise self.error(f"an attribute of one of the kinds {', '.join(KINDS)}", repr(kind), start)
        self.expect("(")
        try:
            found = KINDS[kind].parse(self)
        except (OverflowError, TypeError, ValueError) as error:
            if isinstance(error, ParseError):
                raise
            raise self.error(f"a value for {kind}", str(error), start) from None
        self.expect(")")
        return found

    def attributes(self) -> dict[str, Attribute]:
        def entry() -> tuple[str, Attribute]:
            self.space()
            quoted = self.text.startswith('"', self.pos)
            name = self.string() if quoted else self.match("[A-Za-z_][A-Za-z0-9_]*", "the name of an attribute")
            self.expect(":")
            return name, self.attribute()
        return dict(self.sequence("{", entry, "}"))

    # -------------------------------------------------------------------------------------------- structure
    def program(self) -> Program:
        program = Program()
        self.expect("{")
        if self.accept("form "):
            program.form = self.match("paddle", "the form paddle")
        while self.accept("assume "):
            start, assumption = self.pos, self.assumption()
            try:
                program.constraints.add(assumption)
            except ValueError as error:
                raise self.error("assumptions that some sizes fulfil", str(error), start) from None
        return self.body(program)

    def body(self, program: Program) -> Program:
        """Fill the program with what stands before its `}`, the end of the text."""
        open_blocks: list[tuple[Block, Operation | None]] = [(program.global_block(), None)]    # and whose they are
        while open_blocks:
            block, owner = open_blocks[-1]
            if not self.accept("}"):
                op, opens = self.operation()
                block.append(op)
                if opens:
                    open_blocks.append((self.region(op), op))
                continue
            open_blocks.pop()
            if owner is not None and self.another_region():
                open_blocks.append((self.region(owner), owner))
        self.space()
        if self.pos < len(self.text):
            raise self.error("the end of the text")
        return program

    def another_region(self) -> bool:
        """Read what opens one more region of an operation, if that comes next."""
        return self.accept("{")

    def assumption(self) -> Constraint:
        start = self.pos
        text = self.match(r'(?:[^",]|,(?! *"))+', "a relation of dimensions such as S0 == 4")
        try:
            kind, left, right = parse_relation(text)
        except ValueError as error:
            raise self.error("a relation of dimensions", str(error), start) from None
        self.expect(",")
        what = self.string()
        self.expect(",")
        return Constraint(kind, left, right, what, self.string())

    def region(self, owner: Operation) -> Block:
        """Open the next region of `owner`, after its `{`, and read its arguments."""
        from minipd.ir.region import Region
        region = Region(owner)
        owner.regions.append(region)
        block = region.add_block()
        if self.accept("^"):
            while True:
                name = self.name()
                attributes = self.attributes()
                self.expect(":")
                arg = block.add_arg(self.type())
                arg.attributes.update(attributes)
                self.define(name, arg)
                if not self.accept(","):
                    break
        return block

    def name(self) -> tuple[str, int]:
        """The name of a value, and where it stands."""
        self.space()
        start = self.pos
        return self.match(r"%[A-Za-z0-9_]+", "a value such as %0"), start

    def use(self) -> Value | None:
        if self.accept(NULL_VALUE):
            return None
        name, start = self.name()
        if name not in self.values:
            raise self.error("a value that is defined above", name, start)
        return self.values[name]

    def define(self, name: tuple[str, int], value: Value) -> None:
        if name[0] in self.values:
            raise self.error("a name that is not taken yet", name[0], name[1])
        self.values[name[0]] = value

    def operation(self) -> tuple[Operation, bool]:
        """One operation up to its types, and whether a region follows (its opening brace is read).

            (%1, %2) = "pd_op.split" (%0, %3) {...} : (tensor<4xf32>, ...) -> tensor<2xf32>, tensor<2xf32>

        As many types follow the arrow as there are results.  The results are defined when the operation is there, so
        it cannot use them itself.
        Raises: ParseError also where the types in brackets are not those of the operands.
        """
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        op_name = self.string()
        operands = self.sequence("(", self.use, ")")
        attributes = self.attributes()
        self.expect(":")
        self.space()
        start = self.pos
        takes = self.sequence("(", self.type, ")")
        if takes != (types := [NULL_TYPE if v is None else v.type() for v in operands]):
            raise self.error(f"the operands' types ({', '.join(map(str, types))})",
                             f"({', '.join(map(str, takes))})", start)
        self.expect("->")
        start = self.pos
        gives: list[Type] = []
        while len(gives) < len(names):
            if gives:
                self.expect(",")
            gives.append(self.type())
        op = Operation(op_name, operands, attributes, gives)
        for name, result in zip(names, op.results(), strict=True):
            self.define(name, result)
        return op, self.accept("{")


_SPACE = re.compile(r"\s*")
#: a type whose text stands for it wherever it stands: no brackets inside
_PLAIN_TENSOR = re.compile(r"tensor<[^()<>]*>")
_compiled = functools.cache(re.compile)
