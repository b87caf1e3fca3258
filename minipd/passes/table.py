"""The table of passes: Paddle's name -> how to make the pass."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minipd.ir.passes import Pass
from minipd.passes.base import FunctionPass, PatternRewritePass, require_visits
from minipd.passes.base import Pass as BasePass
from minipd.passes.pattern import RULES

__all__ = ["create_pass", "function_pass", "pass_names", "register_pass"]

MAKERS: dict[str, Callable[..., Pass]] = {}
#: attributes that Paddle gives to passes, whether they look at them or not -> the option that they are here
PADDLE = {"__place__": "place", "__param_scope__": "param_scope"}

M = TypeVar("M", bound=Callable[..., Any])


def register_pass(name: str) -> Callable[[M], M]:
    """Decorator: a class (or function) whose call makes the pass `name`.  A class need not say its name again.

    Raises: ValueError if there is one of that name, unless it is from the same module: that is run again, as a cell of
    a notebook is.
    """
    def register(make: M) -> M:
        if name in MAKERS and MAKERS[name].__module__ != make.__module__:
            raise ValueError(f"register_pass: expected a new name, got {name!r}, which is the pass of "
                             f"{MAKERS[name].__module__}; choose another")
        if isinstance(make, type):
            own: Any = make
            if getattr(own, "name", "") not in ("", name):
                raise ValueError(f"register_pass: expected {own.__name__}.name to be {name!r}, got {own.name!r}; "
                                 "leave it out, or write the same")
            own.name = name
        MAKERS[name] = make
        return make
    return register


def function_pass(name: str, visits: str = "program", *, opt_level: int = 1, dependents: Sequence[str] = (),
                  exact: bool = False) -> Callable[[M], M]:
    """Decorator: the function, which returns the number of its changes, is the pass `name`; see `FunctionPass`.
    Its keyword-only parameters are the options of the pass.

    Raises: ValueError for another word than those of `visits`.

    >>> @function_pass("no_op_pass")
    ... def nothing(program, *, times=1):
    ...     "Changes nothing."
    ...     return 0
    >>> from minipd.ir.program import Program
    >>> create_pass("no_op_pass", {"times": 2}).run(Program())
    0
    >>> del MAKERS["no_op_pass"]
    """
    require_visits(name, visits)

    def register(function: M) -> M:
        def make(**options: Any) -> Pass:
            return FunctionPass(name, function, visits, opt_level=opt_level, dependents=dependents, exact=exact,
                                **options)
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        make.__signature__ = inspect.Signature(own)         # type: ignore[attr-defined]
        functools.update_wrapper(make, function, ("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        vars(make).update(opt_level=opt_level, exact=exact, dependents=tuple(dependents))
        register_pass(name)(make)
        return function
    return register


def create_pass(name: str, attrs: dict[str, Any] | None = None) -> Pass:
    """A pass by name.  attrs: its options.  Paddle's attributes `__place__` and `__param_scope__` are the options
    `place` and `param_scope` of passes that have these, and may be given to all.

    Raises: KeyError for an unknown name, TypeError for an option that the pass does not have.

    >>> create_pass("constant_folding_pass", {"max_elements": 64, "__place__": "cpu"})
    <pass constant_folding_pass {'max_elements': 64}>
    """
    require_pass(name)
    known = pass_options(name)
    options = {}
    for key, value in (attrs or {}).items():
        option = PADDLE.get(key, key)
        if option in known:
            options[option] = value
        elif key not in PADDLE:
            near = difflib.get_close_matches(key, known, 1)
            raise TypeError(f"pass {name}: expected options among {', '.join(known) or '(it has none)'}, got {key!r}"
                            + (f"; did you mean {near[0]}?" if near else ""))
    missing = [option for option, p in known.items() if p.default is p.empty and option not in options]
    if missing:
        raise TypeError(f"pass {name}: expected a value for the option {missing[0]!r}, got none; give it as "
                        f"add_pass({name!r}, {{{missing[0]!r}: ...}})")
    made = MAKERS[name](**options) if name in MAKERS else PatternRewritePass(name, **options)
    if isinstance(made, BasePass):
        made.attrs = options
    return made


def require_pass(name: str) -> None:
    """Raise KeyError unless there is a pass of that name."""
    if name not in MAKERS and name not in RULES:
        near = difflib.get_close_matches(name, pass_names(), 3)
        raise KeyError(f"pass {name!r}: expected one of the table, got no such name; "
                       + (f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(pass_names())}"))


def pass_options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a pass."""
    if name not in MAKERS:
        own = inspect.signature(PatternRewritePass).parameters
        return {"max_rewrites": own["max_rewrites"]}
    parameters = inspect.signature(MAKERS[name]).parameters
    return {n: p for n, p in parameters.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
            and n not in ("name", "patterns")}


def pass_names() -> list[str]:
    """The names in the table."""
    return sorted({*MAKERS, *RULES})
