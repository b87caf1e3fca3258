'''Dialects: the operations, types and attributes there are, by name.

An operation `pd_op.add` belongs to dialect `pd_op`.  A dialect is declared; there is one way:

    thermo = register_dialect(Dialect("thermo"))

    @thermo.op("to_kelvin", Trait.ELEMENTWISE)                  # a tensor operator: a row of the operator table
    class ToKelvin:
        def infer_meta(celsius, *, zero: float = 273.15): return celsius
        def kernel(xp, celsius, *, zero): return celsius + zero
        def vjp_celsius(g): return g

    @thermo.op("log", Trait.SIDE_EFFECT)                        # an operation of the program
    class Log:
        "Notes a value under a name."
        operands = {"value": TensorType}                        # name -> what type it must have; or only the names
        attributes = {"label": str}                             # name -> the Python type of its value, or a kind
        def verify(op): ...                                     # raises ValueError if one is wrong in its own way

    @thermo.type("scale")                                       # prints and parses as `thermo.scale<"K">`
    class ScaleType(Type):
        __slots__ = ("unit",)

A class that has `infer_meta` is a row, written as in `framework.row`.  (The rows of `pd_op` are declared with `@op`
there, because they stand below the programs; this dialect finds them when they are first asked for.)  The class becomes
the `Row`, which can be called: eagerly, under the tape, in a trace.  Any other class becomes an `OpInfo`.

What a class may say besides:

    results             like `operands`
    regions             names of its regions, `("true", "false")`, or how many
    attributes          `{"label?": str}`: one that may be missing.  A row's are its keyword-only parameters, and where
                        one is annotated with bool, int, float, complex or str, the verifier holds it to that
    the column of an interface (`decompose`, ...): how it does what the interface asks
'''

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from minipd.framework.row import ROWS, Row, Trait
from minipd.framework.row import op as row_op
from minipd.ir.attributes import Attribute, attribute_kind, kind_of
from minipd.ir.context import CONTEXT
from minipd.ir.interfaces import INTERFACES
from minipd.ir.traits import IrTrait
from minipd.ir.types import Type, type_keyword

if TYPE_CHECKING:
    from minipd.ir.operation import Operation

__all__ = ["Dialect", "OpInfo", "op_info", "register_dialect"]

#: attributes that any operation may carry: facts about it, which no kernel and no shape rule reads
COMMON_ATTRIBUTES = {"as_written", "chunk_id", "comp_op_name", "is_inplace", "op_callstack", "op_role", "persistable",
                     "place", "stop_gradient", "struct_name"}

#: what the type of an operand or a result must be: a class of types, one type, or a function that tells, whose
#: docstring says which it wants
TypeConstraint = type[Type] | Type | Callable[[Type], bool]

T = TypeVar("T", bound=type[Type])
A = TypeVar("A", bound="type[Attribute]")
PythonType = type


@dataclass(frozen=True)
class OpInfo:
    """What is known of all operations of one name.

    inputs, outputs: names; a name that starts with `*` stands for any number.  attrs: names, those in `required` must
    be given.  regions: how many.  check: raises ValueError if one operation is wrong in a way of its own.
    registered: False for a name that no dialect knows; such an operation can be kept, printed and copied, not run.
    types: name of an operand or result -> what type it must have.  kinds: name of an attribute -> the classes it may
    be of.  region_names: of all regions, or none.  columns: what interfaces find here (see `interfaces`).
    """

    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attrs: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    traits: frozenset[Any] = frozenset()
    regions: int = 0
    row: Row | None = None
    check: Callable[[Operation], None] | None = None
    registered: bool = True
    types: Mapping[str, TypeConstraint] = field(default_factory=dict)
    kinds: Mapping[str, tuple[type[Attribute], ...]] = field(default_factory=dict)
    region_names: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    doc: str = ""


@dataclass
class Dialect:
    """A named set of operations, types and attributes."""

    name: str
    ops: dict[str, OpInfo] = field(default_factory=dict)

    def op(self, name: str, *traits: Trait | IrTrait) -> Callable[[type], Any]:
        """Class decorator: the class declares the operation `name` (see the module's docstring).

        Raises: ValueError if there is one already, or if traits contradict each other; TypeError for what no
        declaration says.
        """
        def register(cls: type) -> Any:
            if name in self.ops:
                raise ValueError(f"{self.name}.{name}: there is such an operation already")
            if Trait.SIDE_EFFECT in traits and IrTrait.PURE in traits:
                raise ValueError(f"{self.name}.{name}: expected traits that agree, got Pure and SideEffect")
            said = {k: v for k, v in vars(cls).items() if not k.startswith("__")}
            if not hasattr(cls, "infer_meta"):
                info = self.ops[name] = _declared(f"{self.name}.{name}", inspect.cleandoc(cls.__doc__ or ""), said,
                                                  frozenset(traits))
                return info
            row = row_op(name, *(t for t in traits if isinstance(t, Trait)), dialect=self.name)(cls)
            info = info_of_row(row)
            self.ops[name] = replace(
                info, traits=info.traits | frozenset(traits), check=said.get("verify"), kinds=_annotated(row),
                types={**_named(said.get("operands")), **_named(said.get("results"))})
            for known in INTERFACES.values():
                if known.column in said and known.column not in OF_ROWS:
                    known.declare(row, said[known.column])
            return row
        return register

    def type(self, word: str) -> Callable[[T], T]:
        """Class decorator: the class, a subclass of `Type`, is the type that prints as `dialect.word<...>`."""
        return type_keyword(f"{self.name}.{word}")

    def attribute(self, kind: str, *python_types: PythonType) -> Callable[[A], A]:
        """Class decorator: the class, a subclass of `Attribute`, is the kind of attribute that prints as
        `dialect.kind(...)`, and what values of the Python types become."""
        return attribute_kind(f"{self.name}.{kind}", *python_types)

    def find(self, name: str) -> OpInfo | None:
        """The entry of an operation that is asked for the first time; None if it is unknown.  Here: that of its row."""
        row = ROWS.get(name)
        return info_of_row(row) if row is not None and row.dialect == self.name else None


D = TypeVar("D", bound=Dialect)


def register_dialect(dialect: D, replace: bool = False) -> D:
    """Make a dialect known.

    replace: forget a dialect of that name, with its operations, types and attributes, instead of refusing; for a
    notebook's cell that runs again.
    Raises: ValueError if there is one of that name.
    """
    if dialect.name in CONTEXT.dialects:
        if not replace:
            raise ValueError(f"register_dialect: there is a dialect {dialect.name!r} already; replace=True forgets it, "
                             "to declare it anew")
        _forget(dialect.name)
    CONTEXT.dialects[dialect.name] = dialect
    return dialect


def _forget(dialect: str) -> None:
    del CONTEXT.dialects[dialect]
    for table in (CONTEXT.types, CONTEXT.attributes):
        for word in [w for w in table if w.startswith(f"{dialect}.")]:
            del table[word]
    for name, row in [(n, row) for n, row in ROWS.items() if row.dialect == dialect]:
        del ROWS[name]
        for known in INTERFACES.values():
            known.forget(row)


def op_info(full_name: str) -> OpInfo:
    """What is known of the operations called `full_name`, such as `pd_op.add`.

    Raises: KeyError if the dialect or the operation is unknown.
    """
    dialect_name, _, name = full_name.partition(".")
    dialect = CONTEXT.dialects.get(dialect_name)
    if dialect is None:
        raise KeyError(f"operation {full_name!r}: no dialect {dialect_name!r}; there are {', '.join(CONTEXT.dialects)}")
    info = dialect.ops.get(name)
    if info is None:
        info = dialect.find(name)
        if info is None:
            raise KeyError(f"operation {full_name!r}: dialect {dialect_name!r} has no operation {name!r}, and the "
                           "operator table no row of that name")
        dialect.ops[name] = info
    return info


def info_or_unregistered(full_name: str) -> OpInfo:
    """`op_info`, and for a name that no dialect knows what may be assumed of anything: any operands, results and
    attributes, and an effect that forbids to remove it.  Nothing is remembered of an unknown name, so that a dialect
    that is registered later is seen."""
    try:
        return op_info(full_name)
    except KeyError:
        return OpInfo(full_name, ("*operands",), ("*results",), traits=frozenset({Trait.SIDE_EFFECT}), registered=False)


def info_of_row(row: Row) -> OpInfo:
    """A row as the dialect sees it.  Its mutable attributes are operands, after the tensors, in the row's order."""
    inputs = [f"*{n}" if row.variadic and n == row.inputs[-1] else n for n in row.inputs]
    attrs = tuple(a for a in row.attrs if a not in row.mutable)
    required = tuple(a for a in attrs if row.attrs[a] is inspect.Parameter.empty)
    traits: set[Any] = set(row.traits)
    if Trait.COMM in traits:
        traits.add(Trait.SIDE_EFFECT)           # a rank that leaves out a collective leaves the others waiting
    if not traits & {Trait.SIDE_EFFECT, Trait.RANDOM}:
        traits.add(IrTrait.PURE)
    if row.name in ("full", "full_int_array"):
        traits.add(IrTrait.CONSTANT)
    return OpInfo(f"{row.dialect}.{row.name}", (*inputs, *row.mutable), row.outputs, attrs, required, frozenset(traits),
                  row=row, doc=row.doc)


# ------------------------------------------------------------------------------------- reading a declaration
#: what the class of an operation may say, besides the columns of interfaces
SAYS = ("operands", "results", "attributes", "regions", "verify")
#: the columns that a row reads off its class itself
OF_ROWS = ("infer_meta", "kernel", "vjp")


def _declared(full_name: str, doc: str, said: dict[str, Any], traits: frozenset) -> OpInfo:
    unknown = [k for k in said if k not in SAYS and k not in _columns(said)]
    if unknown:
        raise TypeError(f"{full_name}: expected a declaration of {', '.join(SAYS)} or of the column of an interface, "
                        f"got {unknown[0]!r}; a tensor operator also has `infer_meta`")
    operands, results, attributes = (said.get(k, ()) for k in ("operands", "results", "attributes"))
    regions = said.get("regions", 0)
    names = () if isinstance(regions, int) else tuple(regions)
    return OpInfo(
        full_name, inputs=tuple(operands), outputs=tuple(results),
        attrs=tuple(a.removesuffix("?") for a in attributes),
        required=tuple(a for a in attributes if not a.endswith("?")), traits=traits,
        regions=regions if isinstance(regions, int) else len(names),
        check=said.get("verify"), types={**_named(operands), **_named(results)},
        kinds={a.removesuffix("?"): kind_of(kind) for a, kind in _named(attributes).items()}, region_names=names,
        columns=_columns(said), doc=doc)


def _named(declared: Mapping[str, Any] | Sequence[str] | None) -> dict[str, Any]:
    """The constraints of a declaration, which may be names only."""
    return dict(declared) if isinstance(declared, Mapping) else {}


def _columns(said: dict[str, Any]) -> dict[str, Any]:
    """What a declaration says for interfaces."""
    return {cls.column: said[cls.column] for cls in INTERFACES.values() if cls.column in said}


def _annotated(row: Row) -> dict[str, tuple[type[Attribute], ...]]:
    """The kinds of a row's attributes, where its shape rule annotates them with a Python type that has one."""
    plain = {t.__name__: t for t in (bool, int, float, complex, str)}
    parameters = inspect.signature(row.infer_meta).parameters
    annotated = {n: plain.get(getattr(p.annotation, "__name__", p.annotation)) for n, p in parameters.items()}
    return {n: kind_of(t) for n, t in annotated.items() if t is not None and n in row.attrs and n not in row.mutable}
