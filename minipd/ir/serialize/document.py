"""A JSON document of unknown origin, read with care.

`Node` is a value in the document together with its place, so that whatever is not as it should be is told with where it
stands: `program.regions[0].blocks[0].ops[3].I[1]`.  Reading makes nothing larger than the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from minipd.framework.errors import InputError

__all__: list[str] = []

#: in words, for errors
KINDS = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false",
         float: "a number", type(None): "null"}


class Node:
    """A value of a document.  place: the steps that lead to it, each with the node that it starts from."""

    __slots__ = ("file", "parent", "step", "value")

    def __init__(self, value: Any, file: str, parent: Node | None = None, step: str = ""):
        self.value, self.file, self.parent, self.step = value, file, parent, step

    @property
    def place(self) -> str:
        steps, node = [], self
        while node.parent is not None:
            steps.append(node.step)
            node = node.parent
        return "".join(reversed(steps)).removeprefix(".") or "the whole document"

    def fail(self, expected: str, got: str | None = None,
             do: str = "save the program again; the file was damaged or written by something else") -> NoReturn:
        """Raise the InputError that something else was expected here."""
        raise InputError(expected, f"{self.text if got is None else got} at {self.place} in {self.file}", do)

    @property
    def text(self) -> str:
        """The value, shortened."""
        if isinstance(self.value, (dict, list)):
            return f"{KINDS[type(self.value)]} of {len(self.value)} entries"
        text = json.dumps(self.value)
        return text if len(text) <= 60 else f"{text[:60]}..."

    # ------------------------------------------------------------------------------------------------ contents
    def has(self, key: str) -> bool:
        return key in self.mapping()

    def __getitem__(self, key: str) -> Node:
        """The entry of an object."""
        if key not in self.mapping():
            self.fail(f"an object with the entry {key!r}", f"one with {', '.join(self.value) or 'none'}"[:200])
        return Node(self.value[key], self.file, self, f".{key}")

    def items(self, number: int | None = None) -> Iterator[Node]:
        """The entries of a list; of `number` entries, if given."""
        if not isinstance(self.value, list) or number is not None and len(self.value) != number:
            self.fail("a list" if number is None else f"a list of {number} entries")
        return (Node(v, self.file, self, f"[{i}]") for i, v in enumerate(self.value))

    def mapping(self) -> dict[str, Any]:
        return self._as(dict)

    def string(self) -> str:
        return self._as(str)

    def boolean(self) -> bool:
        return self._as(bool)

    def flag(self) -> bool:
        """true, false, 1 or 0."""
        if self.value not in (0, 1):
            self.fail("a flag, 0 or 1")
        return bool(self.value)

    def whole(self, bits: int = 64) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value.bit_length() >= bits:
            self.fail(f"a whole number of {bits} bits")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            self.fail("a number")
        try:
            return float(self.value)
        except OverflowError:
            self.fail("a number that a float can hold")

    def _as(self, kind: type) -> Any:
        if not isinstance(self.value, kind):
            self.fail(KINDS[kind])
        return self.value


def document(data: str | bytes, file: str) -> Node:
    """The document in `data`; `file` says in errors where it comes from.

    Raises: InputError for what is no JSON, with line and column.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        return Node(json.loads(text, parse_constant=_refused), file)
    except UnicodeDecodeError as error:
        got = f"bytes that are no UTF-8 (byte {error.start})"
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        got = (f"{'a document that was cut short' if cut else error.msg} at line {error.lineno}, "
               f"column {error.colno}")
    except RecursionError:
        got = "brackets that are nested without end"
    except ValueError as error:         # a constant that is not JSON's, a number of more digits than Python converts
        got = str(error)
    raise InputError("a program as Paddle 3 saves it, a JSON document", f"{got} in {file}",
                     "copy or save the file again; a program of Paddle 2 (.pdmodel) is not read")


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"the constant {constant}, which JSON does not have,")
