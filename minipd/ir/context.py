"""The context: what all programs of a process share.

*Uniqued data.*  Types and attributes are immutable, and two that say the same are one object.  So `==` is `is`, a hash
is an address, and a program of ten thousand operations holds each type once.  `Uniqued.unique` is the only place where
one is made: it looks up what the new one would say, and makes it only if there is none.  The table holds its entries
weakly: what no program uses any more is forgotten, so that tracing for a week costs no memory.

*Words.*  Under which word the text of a type or of an attribute starts, and what attribute a Python value becomes.

*Dialects.*  Which operations there are (see `dialect`).

The context is one for a process, not one for a rank: nothing in it differs between ranks, and their programs meet.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast
from weakref import KeyedRef, WeakValueDictionary

if TYPE_CHECKING:
    from minipd.ir.attributes import Attribute
    from minipd.ir.dialect import Dialect, OpInfo
    from minipd.ir.types import Type

__all__ = ["IrContext"]

U = TypeVar("U", bound="Uniqued")


class IrContext:
    """Types, attributes and dialects.  `IrContext.instance()` is the one that everything uses.

    >>> from minipd.ir.types import DenseTensorType
    >>> DenseTensorType((2, 3), "float32") is DenseTensorType([2, 3], "float32")
    True
    >>> IrContext.instance().get_registered_op_info("pd_op.add").inputs
    ('x', 'y')
    """

    def __init__(self) -> None:
        #: (class, what it says) -> the one object that says it
        self.uniqued: WeakValueDictionary[tuple[type, Any], Uniqued] = WeakValueDictionary()
        #: the same with weak references for values, for looking up without a call of Python code
        self.references: dict[tuple[type, Any], KeyedRef] = self.uniqued.data  # type: ignore[attr-defined]
        self.making = threading.Lock()
        #: the word that a type's text starts with -> the class
        self.types: dict[str, type[Type]] = {}
        #: the kind of an attribute, as written in the exact style -> the class
        self.attributes: dict[str, type[Attribute]] = {}
        #: Python type -> the class of attributes that its values become; the nearest base class counts
        self.attribute_of: dict[type, type[Attribute]] = {}
        self.dialects: dict[str, Dialect] = {}

    @staticmethod
    def instance() -> IrContext:
        """The context of this process."""
        return CONTEXT

    # ------------------------------------------------------------------------------------ dialects, Paddle's names
    def get_registered_dialect(self, name: str) -> Dialect:
        """Raises: KeyError if there is none of that name."""
        if name not in self.dialects:
            raise KeyError(f"dialect {name!r}: there is none; there are {', '.join(self.dialects)}")
        return self.dialects[name]

    def get_registered_op_info(self, name: str) -> OpInfo:
        """What is known of the operations called `name`, such as `pd_op.add`.

        Raises: KeyError if the dialect or the operation is unknown.
        """
        from minipd.ir.dialect import op_info
        return op_info(name)


CONTEXT = IrContext()


class Uniqued:
    """Immutable data, one object for all that say the same.

    A subclass names its parts in `__slots__`.  Where these need a check or one form, its `__new__` sees to it and
    returns `cls.unique(key, *parts)`: `key` is what two are compared by, the parts are in the order of `__slots__` from
    the base class down.
    """

    __slots__ = ("__weakref__",)
    #: the names of the parts, those of base classes first
    PARTS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            raise TypeError(f"{cls.__name__}: expected __new__ that returns cls.unique(key, *parts), got __init__, "
                            "which would run again whenever an equal one is asked for")
        slots = vars(cls).get("__slots__")
        if slots is None:
            raise TypeError(f"{cls.__name__}: expected __slots__ with the names of its parts (() if it adds none)")
        cls.PARTS = (*cls.PARTS, *slots)

    @classmethod
    def unique(cls: type[U], key: Any, *parts: Any) -> U:
        """The one object of this class that says `key`."""
        reference = CONTEXT.references.get((cls, key))
        found = None if reference is None else reference()
        if found is not None:
            return cast(U, found)
        with CONTEXT.making:                # of two threads that come here, the second finds what the first made
            found = CONTEXT.uniqued.get((cls, key))
            if found is None:
                found = object.__new__(cls)
                for name, part in zip(cls.PARTS, parts, strict=True):
                    object.__setattr__(found, name, part)
                CONTEXT.uniqued[cls, key] = found
        return cast(U, found)

    def __setattr__(self, name: str, value: object = None) -> NoReturn:
        raise AttributeError(f"{name} of {self!r}: expected no change, it is shared by all who use it; make another "
                             f"{type(self).__name__} instead")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __copy__(self: U) -> U:
        return self

    def __deepcopy__(self: U, memo: dict) -> U:
        return self

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, name) for name in self.PARTS)
