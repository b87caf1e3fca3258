"""Where a user's call enters the library: what goes wrong inside is told in the user's terms.

Calls that succeed pay for nothing but a `try`.  When one fails, and only then, its arguments are looked at: an argument
of a wrong kind, which fails somewhere inside with a message about the inside, raises a TypeError that names the
function, the parameter, what was expected and what came.  Every other error gets a note with the call (operands by
shape and dtype) and the user's line.
"""

from __future__ import annotations

import enum
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from minipd.framework.constraints import PACKAGE, user_line
from minipd.framework.meant import expected
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor

__all__: list[str] = []

#: annotation -> the kinds of values it stands for; parameters with other annotations are not judged
KINDS: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,), "bool": (bool, int), "str": (str,), "float": (float, int), "int": (int,),
}
NUMBER_LIKE = ("int", "float", "bool")


#: the methods with names of Python's own that users call by other means
DUNDERS = ("__init__", "__call__", "__iter__", "__len__", "__getitem__", "__setitem__", "__delitem__")


def open_to_users(module: types.ModuleType) -> None:
    """Let the public functions of a namespace be entrances, and the methods of its classes.

    Code inside the library goes on to call the functions.  `forward` is left alone: `Layer.__call__` tells of it.
    """
    classes: dict[type, None] = {}          # each once: most have their bases in common
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if isinstance(value, types.FunctionType):
            setattr(module, name, entrance(value))
        elif isinstance(value, type) and not issubclass(value, (BaseException, enum.Enum)):
            classes.update(dict.fromkeys(value.__mro__))
    for cls in classes:
        if cls is Tensor:
            _open_class(cls, ())
        elif cls.__module__.startswith("minipd."):
            _open_class(cls, DUNDERS)


def _open_class(cls: type, dunders: tuple) -> None:
    for name, method in list(vars(cls).items()):
        public = name in dunders if name.startswith("_") else name not in ("forward", "values")
        if name == "__call__" and hasattr(cls, "forward") or not isinstance(method, types.FunctionType):
            continue
        if hasattr(method, "is_entrance"):
            continue                                    # an earlier floor has opened it
        if public and (dunders or len(inspect.signature(method).parameters) > 1):      # x.numpy() has nothing to tell
            setattr(cls, name, entrance(method))


def entrance(function: Callable) -> Callable:
    """A public function, as users call it.  It is the same function but for what its errors say.

    (Functions that are marked `is_entrance` tell of their errors themselves: they save the frame of another function.)
    """
    if hasattr(function, "is_entrance"):
        return function

    @functools.wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            tell(function, args, kwargs, error)
            raise
    entered.is_entrance = True  # type: ignore[attr-defined]
    return entered


def tell(function: Callable, args: tuple, kwargs: dict, error: Exception) -> None:
    """Say of an error which call it belongs to; or raise a better one in its place."""
    if getattr(error, "told", False) or _of_the_user(error):
        return                              # by a public function further inside
    if function.__name__ != "forward" and _is_method(function) and _called_by_the_library():
        return                              # a method that another one needs: the user has called that
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return                              # Python has said already what is wrong with the arguments
    name = _name(function, given)
    if not hasattr(given.get("self"), "payload"):       # of a tensor there is more to say than its class
        given.pop("self", None)
    if not _speaks(error):
        wrong = _wrong_kind(function, given)
        if isinstance(error, MemoryError):
            better: Exception = MemoryError(f"{name}: expected sizes for which there is memory, got "
                                            f"{_described(given)}")
        elif wrong is not None:
            better = TypeError(f"{name}: expected {wrong}")
        else:
            better = ValueError(f"{name}: these arguments do not go together: {_described(given)}")
        better.told = True                  # type: ignore[attr-defined]
        _note(better, name, given)
        raise better from error
    error.told = True                       # type: ignore[attr-defined]
    _note(error, name, given)


def tell_user(function: Callable, args: tuple, error: Exception) -> None:
    """`tell`, for an entrance that code inside the library calls too: then it is for the function that the user has
    called to tell."""
    if not sys._getframe(2).f_code.co_filename.startswith(PACKAGE):
        tell(function, args, {}, error)


def _name(function: Callable, given: dict) -> str:
    """`flatten`, and of methods `Linear` (for its constructor and for a call) or `Adam.step`."""
    if "self" not in given or hasattr(given["self"], "payload"):
        return function.__name__
    owner = type(given["self"]).__name__
    return owner if function.__name__ in ("forward", *DUNDERS) else f"{owner}.{function.__name__}"


def _of_the_user(error: Exception) -> bool:
    """Whether an error comes out of the user's own code, which the library was given to call."""
    trace = error.__traceback__
    trace = trace and trace.tb_next         # the first is that of `entered`
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return any(not file.startswith(PACKAGE) for file in files if not _library(file))


def _is_method(function: Callable) -> bool:
    return hasattr(function, "__code__") and function.__code__.co_varnames[:1] == ("self",)


def _called_by_the_library() -> bool:
    """Whether the function that has called `tell` was itself called from inside the library."""
    return sys._getframe(3).f_code.co_filename.startswith(PACKAGE)


def _library(file: str) -> bool:
    return "site-packages" in file or file.startswith(("<__array_function__", "<frozen"))


def _note(error: Exception, name: str, given: dict) -> None:
    told = any(note.startswith("in ") for note in getattr(error, "__notes__", ()))     # by the kernel that failed
    error.add_note(("" if told else f"in {name}({_described(given)}), ") + f"called at {user_line()}")


#: Phrases of Python's and numpy's own messages about values that a user has never seen.
INSIDE = re.compile(
    r"has no attribute|is not iterable|not subscriptable|unsupported operand|bad operand type|cannot be interpreted|"
    r"object is not callable|ufunc|numpy\.|ndarray' |could not be broadcast|could not broadcast|operands could not|"
    r"out of bounds for|cannot reshape array|zero-size array|too many indices|setting an array element|"
    r"object of type|not supported between|only integer|only length-1|inhomogeneous|must be real number|"
    r"cannot unpack|not enough values to unpack|too many values to unpack|invalid literal|could not convert string|"
    r"sequence item|can't multiply sequence|can only concatenate|unhashable type|incorrect number of|"
    r"argument must be|must be str|negative dimensions are not allowed|list index out of range|"
    r"tuple index out of range|slice indices must be|math domain error|has no len|cannot convert float|"
    r"array is too big|zero step|arg 3 must not be zero|Python int too large|too large to convert")


#: Errors of a broken inside, unless the library raises them with words of its own.
NEVER_SPEAK = (AttributeError, KeyError, AssertionError, StopIteration, UnboundLocalError, ArithmeticError,
               MemoryError)


def _speaks(error: Exception) -> bool:
    """Whether an error's message is one for users: not Python's or numpy's about the inside."""
    if type(error).__module__.startswith("minipd."):        # of a class of the library's own
        return True
    text = str(error.args[0]) if error.args else ""
    if re.match(r"(\w+ ')?[\w.]+'?: expected ", text):         # `sum: expected`, `pass 'x': expected`
        return True
    if isinstance(error, NEVER_SPEAK) and not isinstance(error, FloatingPointError):
        return False
    return bool(text) and not INSIDE.search(text)


def _wrong_kind(function: Callable, given: dict) -> str | None:
    """`x to be a Tensor, got list` for the first argument that is not what its annotation, or else its name, says."""
    for name, p in inspect.signature(function).parameters.items():
        if name not in given or given[name] is p.default or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        kinds = [part.strip() for part in p.annotation.split("|")] if isinstance(p.annotation, str) else []
        value = given[name]
        if not kinds or not set(kinds) <= {*KINDS, "None"}:
            if words := expected(name, p.annotation, value):
                return f"{name} to be {words}, got {type(value).__name__} {_short(value)}"
            continue
        allowed = tuple(t for kind in kinds for t in KINDS.get(kind, (type(None),)))
        number = set(kinds) & set(NUMBER_LIKE) and (hasattr(value, "item") or hasattr(value, "__index__"))
        if not isinstance(value, allowed) and not number:
            article = "an" if kinds[0][0] in "aeiou" else "a"
            words = " or ".join(k if k == "None" else f"{article} {k}" for k in kinds)
            return f"{name} to be {words}, got {type(value).__name__}" + (
                "" if isinstance(value, Tensor) or value is None else f" {_short(value)}")
    return None


def _described(given: dict) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in given.items())


def _short(value: Any) -> str:
    """A value in few characters: tensors by dtype and shape."""
    if isinstance(value, Tensor) or hasattr(value, "dtype") and hasattr(value, "shape"):
        return describe(value.payload if isinstance(value, Tensor) else value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_short, value[:4])) + (", ..." if len(value) > 4 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
