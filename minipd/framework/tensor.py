"""Tensor: a mutable handle on an immutable payload.

What a tensor *is* is its payload: a `numpy.ndarray` (eager), an `ir.Value` (while tracing), a `DistValue` (a mesh,
placements and a local payload) or a `Meta` (shapes only).  The tape, in-place writes and names live on the handle; the
interpreters below the tape see payloads only.

Class attributes are the defaults of fields that most tensors never set: creating a tensor stores one field.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.memory import InMemory
from minipd.framework.meta import describe, is_pending, is_traced
from minipd.framework.printing import PREFIX, text_of
from minipd.framework.rank import current
from minipd.framework.size import Size

if TYPE_CHECKING:
    from minipd.framework.tensor_methods import TensorMethods  # a stub: what floors attach to Tensor
else:
    TensorMethods = object

__all__ = ["Parameter", "Tensor"]


class Storage:
    """What handles that share memory have in common.  Made at the first sharing: other tensors never pay for it.

    version: writes so far.  recorded: the version of the last write while operators were recorded; tracked: of the last
    one that carries gradient history.  leaf: a weak reference to the leaf that wants a gradient of this memory, if any.
    root: the array that the others are views of, once there are others.  torn: it is not row-major, and a reshape that
    should be a view of it is a copy (`views.share_view`).
    """

    version: int = 0                    # class attributes are the defaults here too: most are never written
    recorded: int = 0
    tracked: int = 0
    leaf: Any = None
    root: Any = None
    torn: bool = False


class Tensor(InMemory, TensorMethods):
    """A multi-dimensional array with a gradient history.  Build one with `to_tensor`.

    Paddle's `paddle.Tensor`: `stop_gradient` is True unless the tensor takes part in differentiation; `grad` is filled
    by `backward()` for leaves.
    """

    stop_gradient: bool = True
    node: Any = None                    # the tape node that made this tensor
    index: int = 0                      # which of the node's results it is
    grad: Tensor | None = None          # filled by backward() for leaves
    storage: Storage | None = None      # shared with the handles that alias this memory
    seen: int = 0                       # the storage's version when this handle last read or wrote it
    view_of: tuple | None = None        # (base, row, attrs, recorded) of a view while tracing; eager ones alias memory
    views: Any = None                   # weak references to such views of this tensor
    undecided: bool = False             # such a view, or a copy, depending on symbolic dimensions
    persistable: bool = False
    is_parameter: bool = False          # True for a Parameter, which an optimizer updates
    _name: str | None = None

    def __init__(self, payload: Any):
        self.payload = payload

    # ------------------------------------------------------------------------------------------ shape and type
    @property
    def shape(self) -> Size:
        """The (global) shape; dimensions are ints, or symbolic while tracing."""
        return Size(self.payload.shape)

    @property
    def dtype(self) -> dtypes.DataType:
        return dtypes.of(self.payload.dtype)

    @property
    def code(self) -> int:
        """The integer code of the dtype."""
        return dtypes.CODE_OF_NUM[self.payload.dtype.num]

    @property
    def ndim(self) -> int:
        return len(self.payload.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.payload.shape)

    ndimension = dim

    @property
    def size(self) -> int:
        """The number of elements."""
        return Size(self.payload.shape).numel()

    @property
    def name(self) -> str:
        """The tensor's name, generated at first use."""
        if self._name is None:
            self._name = current().unique_name("generated_tensor")
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def is_leaf(self) -> bool:
        """True for tensors that no recorded operation produced."""
        node = self.node
        return node is None or node.leaf is not None and node.leaf() is self

    # ------------------------------------------------------------------------------------------------- values
    def numpy(self) -> np.ndarray:
        """The values as a new array (bfloat16 as `ml_dtypes.bfloat16`); a distributed tensor's global value.

        Raises: TypeError while tracing, where a tensor has no values yet.
        """
        return np.array(self.values("numpy()"))

    def values(self, asked: str) -> np.ndarray:
        """The values without a copy, for reading.  `asked` names what wants them, for the error while tracing."""
        p = self.payload
        return p if type(p) is np.ndarray else p.materialize(asked)

    def item(self, *args: int) -> Any:
        """The single element as a Python number (or the element at the given index)."""
        return self.values("item()").item(*args) if args else self._one("item()")

    def _one(self, asked: str) -> Any:
        """The only element; `asked` names what wants it."""
        values = self.values(asked)
        if values.size != 1:
            raise ValueError(f"{asked}: expected a tensor of one element, got {describe(self.payload)}; reduce it "
                             "first (sum, max, ...), or take one element by its index")
        return values.item()

    def _real(self, asked: str) -> Any:
        one = self._one(asked)
        if isinstance(one, complex):
            raise TypeError(f"{asked}: expected a real tensor, got {describe(self.payload)}; take its real() or abs()")
        return one

    def tolist(self) -> Any:
        return self.values("tolist()").tolist()

    def __bool__(self) -> bool:
        return bool(self._one("bool()"))

    def __int__(self) -> int:
        return int(self._real("int()"))

    def __index__(self) -> int:
        index = self._one("index()")
        if type(index) is not int:
            raise TypeError(f"index(): expected an int tensor, got {describe(self.payload)}")
        return index

    def __float__(self) -> float:
        return float(self._real("float()"))

    def __complex__(self) -> complex:
        return complex(self._one("complex()"))

    def __format__(self, spec: str) -> str:
        """A 0-D tensor as its number; what has more elements, or no values, as it prints."""
        p = settled(self)
        return format(self._one("format()"), spec) if spec or type(p) is np.ndarray and p.ndim == 0 else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """For `numpy.asarray`: without a copy where possible, and then read-only, for a write through it would go
        unnoticed (`inplace_version` would not count it, nor a gradient refuse the overwritten value)."""
        seen = self.values("numpy.asarray()").view()
        seen.flags.writeable = False
        return np.array(seen, dtype) if copy else np.asarray(seen, dtype, copy=copy)

    #: numpy leaves `array * tensor` to the tensor's `__rmul__`; on its own it would compute without the tape
    __array_ufunc__ = None

    def __len__(self) -> int:
        if not self.payload.shape:
            raise TypeError("len() of a 0-D tensor: it has no first dimension; use .item() for its value")
        return self.payload.shape[0]

    # ------------------------------------------------------------------------------------------------ handles
    def detach(self) -> Tensor:
        """A tensor on the same memory without gradient history (later writes to either are seen by both)."""
        if is_traced(self.payload) or is_pending(self.payload):
            return self.payload.detached(self)
        t = Tensor(self.payload)
        t.storage = aliased(self)
        t.seen = t.storage.version
        if type(self.payload) is not np.ndarray:
            _share(self, t)
        return t

    def __copy__(self) -> Tensor:
        """Another handle on the same memory, with the same history."""
        settled(self)
        t = type(self)(self.payload)
        t.__dict__.update(self.__dict__)
        t.storage = aliased(self)
        t.views = None
        if self.is_leaf:
            t.node = None                   # a leaf collects its own gradient
        if type(self.payload) is not np.ndarray:
            _share(self, t)
        return t

    def __getstate__(self) -> dict:
        """What pickle and deep copies take along: the values and what the user has set, no history and no gradient."""
        p = settled(self)
        if is_traced(p):
            p.materialize("pickle")
        return self._own()

    def _own(self) -> dict:
        settled(self)
        return {k: v for k, v in self.__dict__.items() if k not in _OF_THE_HANDLE}

    def __deepcopy__(self, memo: dict) -> Tensor:
        """A new leaf, with a name of its own, which takes part in differentiation if this tensor does."""
        memo[id(self)] = t = type(self).__new__(type(self))
        t.__dict__.update(copy.deepcopy(self._own(), memo), _name=None)
        return t

    @property
    def inplace_version(self) -> int:
        """How often this memory has been written in place."""
        return self.storage.version if self.storage is not None else 0

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        p = settled(self)
        if type(p) is not np.ndarray:
            told = getattr(p, "as_handle", None)
            return f"Tensor({p!r}, stop_gradient={self.stop_gradient})" if told is None else told(self.stop_gradient)
        return (f"Tensor(shape={list(p.shape)}, dtype={self.dtype.name}, place={self.place}, "
                f"stop_gradient={self.stop_gradient},\n{' ' * PREFIX}{text_of(self.values('repr()'), PREFIX)})")


#: what a copy of a tensor does not share with it
_OF_THE_HANDLE = ("node", "index", "grad", "storage", "seen", "view_of", "views")


def _share(a: Tensor, b: Tensor) -> None:
    """Two handles hold one distributed value, which has no memory that a write could change: it remembers them."""
    if hasattr(a.payload, "share"):
        a.payload.share(a, b)


def hold(t: Tensor, payload: Any) -> None:
    """Let `t` hold another payload."""
    t.payload = payload
    if is_pending(payload):
        payload.held_by(t)


def settled(t: Tensor) -> Any:
    """The payload of `t`, computed if it was pending."""
    return t.payload.materialize("a look at a tensor") if is_pending(t.payload) else t.payload


def shared(t: Tensor) -> Storage:
    """The storage of `t`, made now if `t` has not been shared yet."""
    if t.storage is None:
        t.storage, t.seen = Storage(), 0
    return t.storage


def aliased(t: Tensor) -> Storage:
    """The storage of `t`, which another handle is about to share."""
    storage = shared(t)
    if storage.root is None:
        storage.root = t.payload
    return storage


def attach(**members: Any) -> None:
    """What a floor above gives to Tensor: methods and properties by name.  (Type checkers see them in the stub.)"""
    for name, member in members.items():
        setattr(Tensor, name, member)


class Parameter(Tensor):
    """A tensor that an optimizer updates: a leaf that wants a gradient, with a unique name (Paddle's EagerParamBase).

    trainable: the opposite of `stop_gradient`.  initialize: how a parameter that was made lazily gets its values, None
    once it has them (and for all others).  `initialize()` fills it; a rank that needs a shard only says
    `initialize(window=(global shape, offsets, local shape))` and finds that part in the payload.
    """

    stop_gradient = False
    persistable = True
    initialize: Any = None
    is_parameter = True
    need_clip: bool = True
    regularizer: Any = None
    is_distributed: bool = False

    def __init__(self, data: Any, requires_grad: bool = True):
        """data: a Tensor, whose memory the parameter shares, or a payload."""
        if not (hasattr(data, "shape") and hasattr(data, "dtype")):
            raise TypeError(f"Parameter: expected a Tensor, got {type(data).__name__} {data!r}; make one of it first, "
                            "paddle.to_tensor(...)")
        super().__init__(settled(data) if isinstance(data, Tensor) else data)
        if isinstance(data, Tensor):
            self.storage = aliased(data)
            self.seen = self.storage.version
        if not requires_grad:
            self.stop_gradient = True

    @functools.cached_property
    def optimize_attr(self) -> dict:
        """What the optimizer treats differently for this parameter: a factor for the learning rate."""
        return {"learning_rate": 1.0}

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, on: bool) -> None:
        self.stop_gradient = not on

    def __repr__(self) -> str:
        said = super().__repr__()
        return said if is_traced(self.payload) else f"Parameter containing:\n{said}"
