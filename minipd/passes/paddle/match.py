"""What Paddle's rules ask of a match, and the attributes that they give to results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ir.attributes import ArrayAttribute, Attribute, PlaceAttribute, StrAttribute
from minipd.ir.paddle.signatures import of_kind
from minipd.passes.matching import Match
from minipd.passes.paddle.view import Place

__all__ = ["ATTRIBUTES", "ComputeAttribute", "MatchContext", "NormalAttribute"]


class NormalAttribute:
    """An attribute that the source binds to a name."""

    def __init__(self, name: str):
        self.name = name


class ComputeAttribute:
    """An attribute that a function of the match gives."""

    def __init__(self, function: Callable[[MatchContext], Any]):
        self.function = function

    def given(self, context: MatchContext) -> Any:
        """Raises: TypeError for a kind that there is not."""
        found = self.function(context)
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], str):
            value, kind = found
            if kind not in KINDS:
                raise TypeError(f"ComputeAttr: expected (value, kind) with one of the kinds {', '.join(KINDS)}, got "
                                f"{kind!r}")
            return of_kind(KINDS[kind], plain(value))
        return found


#: the kinds that a function may name -> ours
KINDS = {"bool": "bool", "int32": "i32", "int64": "i64", "float": "f32", "float32": "f32", "double": "f64",
         "float64": "f64", "string": "str", "str": "str", "datatype": "dtype", "place": "place",
         "vector<int32>": "array<i32>", "vector<int64>": "array<i64>", "vector<float>": "array<f32>",
         "vector<double>": "array<f64>"}


def plain(value: Any) -> Any:
    return value.np if isinstance(value, dtypes.DataType) else value


class MatchContext:
    """A match, as constraints, computed attributes and post-processing see it."""

    def __init__(self, match: Match, place: Place, rule: str):
        self.match, self.place, self.rule = match, place, rule

    def Tensor(self, tensor_name: str) -> Any:
        """A tensor of the source pattern, being traced: it has shape, dtype and the like.

        Raises: KeyError for a name that the source does not have.
        """
        tensors = self.match.tensors()
        if tensor_name not in tensors:
            raise KeyError(f"rule {self.rule}: expected a tensor of the source pattern ({', '.join(tensors)}), got "
                           f"{tensor_name!r}")
        value = tensors[tensor_name]
        return Tensor(self.place.inputs.get(value) or value)

    def Attr(self, attr_name: str) -> Any:
        """An attribute of any kind, as a Python value."""
        found = self.bound(attr_name)
        return list(found.value) if isinstance(found.value, tuple) else found.value

    def bound(self, name: str) -> Attribute:
        """Raises: KeyError for a name that the source does not bind."""
        if name not in self.match.attrs:
            raise KeyError(f"rule {self.rule}: expected an attribute that the source pattern binds "
                           f"({', '.join(self.match.attrs) or 'none'}), got {name!r}")
        return self.match.attrs[name]


def _question(name: str, kinds: tuple[str, ...], give: Callable[[Any], Any]) -> Callable[[MatchContext, str], Any]:
    def ask(self: MatchContext, attr_name: str) -> Any:
        found = self.bound(attr_name)
        kind = kind_of(found)
        if kind not in kinds:
            raise TypeError(f"rule {self.rule}: {name}({attr_name!r}): expected an attribute of kind "
                            f"{' or '.join(kinds)}, got {found!r} of kind {kind}; ask with "
                            f"{next((n for n, (k, _) in QUESTIONS.items() if kind in k), 'Attr')}")
        return give(found.value)
    ask.__name__, ask.__doc__ = name, f"The value of an attribute of kind {' or '.join(kinds)}."
    return ask


def kind_of(attribute: Attribute) -> str:
    """The kind of an attribute, as `operators.txt` writes it."""
    if isinstance(attribute, ArrayAttribute):
        return f"array<{kind_of(attribute.items[0])}>" if attribute.items else "array<>"
    return attribute.kind


#: question -> the kinds of attributes that it may be asked of, and what becomes of the value.  (A float32 of Paddle's
#: may be a double here, where it would lose digits.)
QUESTIONS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "BoolAttr": (("bool",), bool), "Int32Attr": (("i32",), int), "Int64Attr": (("i64", "dim"), lambda v: v),
    "Float32Attr": (("f32", "f64"), float), "DoubleAttr": (("f64", "f32", "i64"), float), "StrAttr": (("str",), str),
    "DataTypeAttr": (("dtype",), lambda v: None if v is None else dtypes.of(v)), "PlaceAttr": (("place",), str),
    "VectorInt32Attr": (("array<i32>", "array<>"), list), "VectorInt64Attr": (("array<i64>", "ints", "array<>"), list),
    "VectorFloat32Attr": (("array<f32>", "array<>"), list),
}
for _name, _question_of in QUESTIONS.items():
    setattr(MatchContext, _name, _question(_name, *_question_of))


def _made(kind: str) -> Callable[[Any, Any], Attribute]:
    def make(self: Any, value: Any) -> Attribute:
        if kind == "place":
            return PlaceAttribute("undefined:0" if value == "undefined" else value)
        return StrAttribute(value) if kind == "layout" else of_kind(kind, plain(value))
    make.__doc__ = f"An attribute of kind {kind}."
    return make


#: what a result pattern makes attributes of numbers and names with
ATTRIBUTES = {name: _made(kind) for name, kind in {
    "StrAttr": "str", "BoolAttr": "bool", "Int32Attr": "i32", "Int64Attr": "i64", "Float32Attr": "f32",
    "DoubleAttr": "f64", "VectorInt32Attr": "array<i32>", "VectorInt64Attr": "array<i64>",
    "VectorFloat32Attr": "array<f32>", "DataTypeAttr": "dtype", "PlaceAttr": "place", "DataLayoutAttr": "layout",
}.items()}
