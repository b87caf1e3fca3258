"""A row: everything that is known about one operator, in one place.

`@op(name)` turns a class into a `Row` and enters it in `ROWS`.  The class is only a readable way to write the columns:

    @op("rsqrt", Trait.ELEMENTWISE)
    class Rsqrt:
        def infer_meta(x): return x                     # the signature is the schema
        def kernel(xp, x): return 1 / xp.sqrt(x)        # xp: the array module of the backend
        def vjp_x(g, out): return g * out ** 3 * -0.5   # the signature is the save list

*Schema.*  Positional parameters of `infer_meta` are tensor operands, keyword-only ones attributes with their defaults.
An operand annotated `Meta` is shape-only: its values are never read, so they are neither kept nor communicated.

*Saves.*  A gradient rule per input, `vjp_<input>`, or one joint `vjp` where the work is shared.  After `g`, its
parameters name what to keep from the forward call: inputs, outputs (`out`), attributes.  Annotated `Meta`, only shape
and dtype are kept.  Only the rules whose input wants a gradient are recorded, and only they save.

*Families.*  What rows of a family share (a shape rule, above all, and `traits`) they inherit: `class Sin(Floating)`.
A shared shape rule whose first parameter is `what` is told the row's name there, for its errors.

*Later columns* (decomposition, SPMD rule, cost, ...) are added by later floors with `add_column`, never here.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import current, dispatch

__all__: list[str] = []


class Trait(enum.Enum):
    """What passes and interpreters may assume of a row."""

    VIEW = "View"                   # the result may share memory with input 0
    INPLACE = "Inplace"             # result i may be written over input `inplace[i]`
    MULTI = "Multi"                 # more than one result: infer_meta and kernel return tuples
    COMM = "Comm"                   # a collective: the kernel's first argument is this rank's communicator
    RANDOM = "Random"               # two calls with equal operands are two draws: never merged, never folded
    SIDE_EFFECT = "SideEffect"      # never removed
    COMMUTATIVE = "Commutative"
    ELEMENTWISE = "Elementwise"
    DISCRETE = "Discrete"           # the result is a truth value, an index or a count: no gradient passes
    ALLOCATES = "Allocates"         # the kernel makes its result, and takes no buffer for it
    EXACT = "Exact"                 # moves or compares data, no rounding: every dtype runs natively


class VjpCall(NamedTuple):
    """One gradient rule: call `fn(g, *saved)`; the result belongs to input `target` (None: a list, one per input).

    plan: (kind, index or name, only_meta) for each saved argument; kind is "in", "all" (variadic), "out" or "attr".
    """

    fn: Callable
    target: int | None
    plan: tuple[tuple[str, Any, bool], ...]


@dataclass(slots=True)
class Recipe:
    """How a call is recorded when certain inputs want a gradient: the rules to call, and what they need, each once.

    whole, metas: numbers of the inputs that are kept with their values, or as shape and dtype only; results: numbers of
    the results that are kept.  variadic: the inputs are kept as one list: "" (not at all), "whole" or "metas".
    What is kept makes one list, in the order of these fields.
    rules: each with its arguments, as positions in that list; ~position stands for the shape and dtype of the value
    there, a string for the attribute of that name.
    """

    whole: tuple[int, ...]
    metas: tuple[int, ...]
    results: tuple[int, ...]
    variadic: str
    rules: tuple[tuple[VjpCall, tuple[int | str, ...]], ...]

    def source(self, position: int, node: Any) -> Any:
        """Where the gradient of the value kept at `position` goes: what `node`, its edges and itself, has for it."""
        if position < len(self.whole):
            return node.edges[self.whole[position]]
        if not len(self.whole) + len(self.metas) <= position < len(self.whole) + len(self.metas) + len(self.results):
            return None
        return node, self.results[position - len(self.whole) - len(self.metas)]


ROWS: dict[str, Row] = {}


def ufunc(name: str) -> Any:
    """A kernel that is exactly the array module's ufunc `name`; it also serves as `kernel_out`.

    (A marker: `Row` binds it to the backend's own function, so that no Python frame stands between.)
    """
    return _Ufunc(name)


class _Ufunc(NamedTuple):
    name: str


class Row:
    """One operator.  Calling it dispatches: `Row(*operands, **attributes)`."""

    def __init__(self, name: str, cls: type, traits: tuple[Trait, ...], dialect: str):
        d = {k: v for base in reversed(cls.__mro__[:-1]) for k, v in vars(base).items()}
        self.name, self.dialect, self.doc = name, dialect, inspect.cleandoc(cls.__doc__ or "")
        self.__doc__ = self.doc
        self.traits = frozenset((*d.get("traits", ()), *traits))
        self.multi, self.view, self.comm = (t in self.traits for t in (Trait.MULTI, Trait.VIEW, Trait.COMM))
        self.infer_meta: Callable = _told(name, d["infer_meta"], cls.__module__)
        params = list(inspect.signature(self.infer_meta).parameters.values())
        self.inputs = tuple(p.name for p in params if p.kind is not p.KEYWORD_ONLY)
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in params)
        self.attrs = {p.name: p.default for p in params if p.kind is p.KEYWORD_ONLY}
        self.shape_only = tuple(i for i, p in enumerate(params) if p.annotation in ("Meta", Meta))
        self.mutable: tuple[str, ...] = d.get("mutable", ())
        self.outputs: tuple[str, ...] = d.get("outputs", ("out",))
        self.inplace: dict[int, int] = d.get("inplace", {})
        #: the operand whose dtype selects the kernel
        self.key: int = d.get("key", 0)
        #: the gradient rule takes the gradient as it comes, and itself gives it the placements of the primal
        self.raw_gradient: bool = d.get("raw_gradient", False)
        #: views only: put_back(base, view, *, attrs) -> the base with the view's elements replaced by `view`
        self.put_back: Callable | None = d.get("put_back")
        self.columns: dict[str, Any] = {}
        self._bind_kernels(d)
        self._grads = self._gradient_rules(d)
        self.has_vjp = bool(self._grads)
        #: some gradient rule needs the value of input 0
        self.saves_first = any(kind == "all" or (kind, i) == ("in", 0) for c in self._grads
                               for kind, i, only_meta in c.plan if not only_meta)
        #: bit mask of the inputs that want a gradient -> the recipe, made at the first such call
        self.recipes: dict[int, Recipe] = {}

    # ------------------------------------------------------------------------------------------------- kernels
    def _bind_kernels(self, d: dict) -> None:
        kernel, out = d.get("kernel"), d.get("kernel_out")
        if isinstance(kernel, _Ufunc):
            function = getattr(np, kernel.name)
            kernel, out = function, functools.partial(_ufunc_out, function)
        elif kernel is not None and not self.comm:
            kernel, out = functools.partial(kernel, np), out and functools.partial(out, np)
        self.kernel: Callable | None = kernel
        self.kernel_out: Callable | None = out
        #: dtype code of the key operand -> the function that computes
        self.kernels: list[Any] = [kernel] * dtypes.N_CODES
        if self.comm:
            self.kernels = [functools.partial(_with_communicator, self)] * dtypes.N_CODES
        #: the same for the function that writes into given buffers
        self.kernel_outs: list[Any] = [self.kernel_out] * dtypes.N_CODES
        if kernel is not None and not self.comm and Trait.EXACT not in self.traits:
            for t in (dtypes.float16, dtypes.bfloat16):
                self.kernels[t.code] = functools.partial(_in_float32, kernel, t.np, self.shape_only)
                if self.kernel_out is not None:
                    self.kernel_outs[t.code] = functools.partial(_into, self.kernels[t.code])

    # ----------------------------------------------------------------------------------------------- gradients
    def _gradient_rules(self, d: dict) -> tuple[VjpCall, ...]:
        found = [VjpCall(d[f"vjp_{name}"], i, self._save_plan(d[f"vjp_{name}"]))
                 for i, name in enumerate(self.inputs) if f"vjp_{name}" in d]
        if "vjp" in d:
            found.append(VjpCall(d["vjp"], None, self._save_plan(d["vjp"])))
        return tuple(found)

    def _save_plan(self, vjp: Callable) -> tuple[tuple[str, Any, bool], ...]:
        plan: list[tuple[str, Any, bool]] = []
        for p in list(inspect.signature(vjp).parameters.values())[1:]:
            only_meta = p.annotation in ("Meta", Meta)
            if self.variadic and p.name == self.inputs[-1]:
                plan.append(("all", 0, only_meta))
            elif p.name in self.inputs:
                plan.append(("in", self.inputs.index(p.name), only_meta))
            elif p.name in self.outputs:
                plan.append(("out", self.outputs.index(p.name), only_meta))
            elif p.name in self.attrs:
                plan.append(("attr", p.name, False))
            else:
                raise TypeError(f"row {self.name}: parameter {p.name!r} of {vjp.__name__} is no input "
                                f"{self.inputs}, output {self.outputs} or attribute {tuple(self.attrs)} of the row")
        return tuple(plan)

    @property
    def vjp_rules(self) -> tuple[VjpCall, ...]:
        """Every gradient rule of the row."""
        return self._grads

    def calls(self, need: int) -> tuple[VjpCall, ...]:
        """The gradient rules to record when the inputs in the bit mask `need` (bit i: input i) want a gradient."""
        return tuple(c for c in self._grads if c.target is None or need >> c.target & 1)

    def recipe(self, need: int) -> Recipe:
        """What recording a call takes when the inputs in the bit mask `need` want a gradient."""
        found = self.recipes.get(need)
        if found is None:
            found = self.recipes[need] = _recipe(self.calls(need))
        return found

    def kernel_out_for(self, payloads: Any) -> Callable | None:
        """The `kernel_out` for operands of these dtypes, as `kernels` has the kernel; None for rows that allocate."""
        arrays = [p for p in (*payloads[self.key:], *payloads) if isinstance(p, np.ndarray)]
        return self.kernel_outs[dtypes.CODE_OF_NUM[arrays[0].dtype.num]] if arrays else self.kernel_out

    # ------------------------------------------------------------------------------------------------ calling
    def attr(self, attrs: dict, name: str) -> Any:
        """An attribute's value in a call, the schema's default where the call gives none."""
        return attrs[name] if name in attrs else self.attrs[name]

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        return dispatch(self, inputs, attrs)

    def __repr__(self) -> str:
        attrs = "".join(f", {k}" if v is inspect.Parameter.empty else f", {k}={v!r}" for k, v in self.attrs.items())
        return f"{self.dialect}.{self.name}({', '.join(self.inputs)}{';' + attrs[1:] if attrs else ''})"


def _told(name: str, rule: Callable, module: str) -> Callable:
    """A family's shape rule as the rule of the row `name`, of a class in `module`."""
    if next(iter(inspect.signature(rule).parameters), None) != "what":
        return rule
    own: Any = functools.partial(rule, name)
    own.__module__ = module
    return own


def _recipe(calls: tuple[VjpCall, ...]) -> Recipe:
    wanted = {(kind, only_meta, i) for call in calls for kind, i, only_meta in call.plan if kind != "attr"}
    if any(kind == "out" and only_meta for kind, only_meta, _ in wanted):
        raise TypeError(f"the gradient rules {[c.fn.__name__ for c in calls]} ask for the shape of a result; a result "
                        "has the shape of its gradient: use g")
    # a value that one rule needs tells its shape to the others
    kept = sorted(entry for entry in wanted if not (entry[1] and ("in", False, entry[2]) in wanted))
    whole, metas, results = (tuple(i for kind, only_meta, i in kept if (kind, only_meta) == group)
                             for group in (("in", False), ("in", True), ("out", False)))
    order = [*(("in", False, i) for i in whole), *(("in", True, i) for i in metas),
             *(("out", False, i) for i in results), *(entry for entry in kept if entry[0] == "all")]

    def position(kind: str, i: Any, only_meta: bool) -> int | str:
        if kind == "attr":
            return i
        if (kind, only_meta, i) in order:
            return order.index((kind, only_meta, i))
        return ~order.index(("in", False, i))

    variadic = "" if not order or order[-1][0] != "all" else "metas" if order[-1][1] else "whole"
    rules = tuple((call, tuple(position(*entry) for entry in call.plan)) for call in calls)
    return Recipe(whole, metas, results, variadic, rules)


def _ufunc_out(function: Callable, out: Any, *xs: Any) -> None:
    function(*xs, out=out)


def ufunc_of(row: Row) -> Callable | None:
    """The array module's function that the row's kernel is (`kernel = ufunc(...)`), None for other rows."""
    out = row.kernel_out
    return out.args[0] if isinstance(out, functools.partial) and out.func is _ufunc_out else None


def _in_float32(kernel: Callable, dtype: np.dtype, shape_only: tuple, *xs: Any, **attrs: Any) -> Any:
    """Low-precision arrays are a storage format: compute in float32, round once (decision 11)."""
    wide = kernel(*[x.astype(np.float32) if getattr(x, "dtype", None) == dtype and i not in shape_only else x
                    for i, x in enumerate(xs)], **attrs)
    if type(wide) is tuple:
        return tuple(w.astype(dtype) if w.dtype == np.float32 else w for w in wide)
    wide = np.asarray(wide)
    return wide.astype(dtype) if wide.dtype == np.float32 else wide


def _with_communicator(row: Row, *xs: Any, **attrs: Any) -> Any:
    comm = current().join()
    if comm is None:
        raise RuntimeError(f"{row.name}: this rank has no communicator; start ranks with `minipd launch -n N "
                           "script.py`, or simulate them with minipd.dist.comm.sim.World(N).run(fn)")
    return row.kernel(comm, *xs, **attrs)  # type: ignore[misc]


def _into(kernel: Callable, out: Any, *xs: Any, **attrs: Any) -> None:
    """`kernel_out` by way of `kernel`: low precision needs a float32 temporary anyhow."""
    result = kernel(*xs, **attrs)
    if type(result) is not tuple:
        out, result = (out,), (result,)
    for buffer, values in zip(out, result, strict=True):
        buffer[...] = values


def op(name: str, *traits: Trait, dialect: str = "pd_op") -> Callable[[Any], Row]:
    """Class decorator: the class becomes the row `name` of the table (see the module's docstring)."""
    def register(cls: Any) -> Row:
        if name in ROWS:
            raise ValueError(f"row {name!r} exists already, in {ROWS[name].infer_meta.__module__}")
        row = ROWS[name] = Row(name, cls, traits, dialect)
        return row
    return register


def add_column(row_name: str, column: str, value: Any) -> None:
    """A later floor adds what it knows of an operator.  A column is written once.

    Raises: KeyError if there is no such row, ValueError if the row has the column already.
    """
    if row_name not in ROWS:
        raise KeyError(f"column {column!r}: no row {row_name!r}; rows are written with @op in minipd/ops")
    columns = ROWS[row_name].columns
    if column in columns:
        raise ValueError(f"row {row_name!r} has a column {column!r} already: {columns[column]!r}")
    columns[column] = value

