"""A layer as a tree: what it holds under which name, and how to walk it.

The attributes of the object are the only record of what it holds: a Parameter among them is a parameter, a layer a
sublayer, another Tensor a buffer (which belongs to the state_dict only if `register_buffer` says so).  Their order is
the order of creation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from minipd.framework.meta import is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.framework.views import rebind

__all__: list[str] = []

#: how often an attribute of some layer has been set: who remembers attributes need not look at each while it stands
CHANGES = [0]


class Tree:
    """The part of `Layer` that knows names and nothing of computing."""

    _scope = ""                             # the name by which the parent knows this layer
    _buffer_names: dict[str, bool]          # name -> whether it belongs to the state_dict

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Tree, Parameter)):
            if "_full_name" not in self.__dict__:
                raise ValueError(f"{type(self).__name__}: super().__init__() should be called first, before "
                                 f"self.{name} is assigned")
            if isinstance(value, Tree):
                value._enter(name)
        elif value is not None and isinstance(self.__dict__.get(name), Parameter):
            raise TypeError(f"{type(self).__name__}.{name} is a parameter: expected a Parameter or None, got "
                            f"{type(value).__name__}; self.{name}.set_value(...) gives it new values")
        elif isinstance(value, Tensor):
            # what is kept while tracing belongs to that program, not to the layer; but a new value of a buffer of the
            # program is written into that
            held = self.__dict__.get(name)
            if is_traced(value.payload) and isinstance(held, Tensor) and is_traced(held.payload) and (
                    name in self._buffer_names) and value.shape == held.shape and value.dtype == held.dtype:
                if held is not value:
                    rebind(held, value, f"assignment of buffer {name}")
                return
            if "_buffer_names" in self.__dict__ and not is_traced(value.payload):
                self._buffer_names.setdefault(name, False)
        elif value is not None and isinstance(self.__dict__.get(name), Tensor):
            raise TypeError(f"{type(self).__name__}.{name} is a buffer: expected a Tensor or None, got "
                            f"{type(value).__name__}; use to_tensor, or another name")
        CHANGES[0] += 1
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        CHANGES[0] += 1
        object.__delattr__(self, name)

    def _enter(self, scope: str) -> None:
        """The parent calls this layer `scope`."""
        object.__setattr__(self, "_scope", scope)

    @property
    def _parameters(self) -> MappingProxyType[str, Parameter]:
        return MappingProxyType({k: v for k, v in self.__dict__.items() if isinstance(v, Parameter)})

    @property
    def _sub_layers(self) -> MappingProxyType[str, Any]:
        return MappingProxyType({k: v for k, v in self.__dict__.items() if isinstance(v, Tree)})

    @property
    def _buffers(self) -> MappingProxyType[str, Tensor]:
        found = {k: self.__dict__.get(k) for k in self._buffer_names}
        return MappingProxyType({k: v for k, v in found.items() if isinstance(v, Tensor)})

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """The same as `setattr(layer, name, parameter)`, for names that are computed.  Returns the parameter.

        Raises: TypeError for what is no Parameter; KeyError where the layer has something else under this name.
        """
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"add_parameter({name!r}): expected a Parameter, got {type(parameter).__name__}; "
                            "make one with create_parameter")
        self._check_free(name, Parameter)
        setattr(self, name, parameter)
        return parameter

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """The same as `setattr(layer, name, sublayer)`.  Returns the sublayer."""
        if not isinstance(sublayer, Tree):
            raise TypeError(f"add_sublayer({name!r}): expected a Layer, got {type(sublayer).__name__}")
        self._check_free(name, Tree)
        setattr(self, name, sublayer)
        return sublayer

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """A tensor that belongs to the layer and is not trained; with `persistable`, a part of the state_dict."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer({name!r}): expected a Tensor, got {type(tensor).__name__}")
        if name not in self._buffer_names:
            self._check_free(name, type(None))
        self._buffer_names[name] = persistable
        if tensor is not None:
            current().ground.buffer_made(tensor)
        setattr(self, name, tensor)

    def _check_free(self, name: str, kind: Any) -> None:
        """A name must be a string that no attribute has, except one of the same kind, which is replaced."""
        old = self.__dict__.get(name)
        if not isinstance(name, str) or not name or hasattr(type(self), name) or not (
                old is None or isinstance(old, kind)):
            raise KeyError(f"{type(self).__name__}: expected a name that the layer does not use yet, got {name!r}")

    def add_module(self, name: str, module: Any) -> None:
        """`add_sublayer`, where None is allowed and keeps the name free."""
        if module is None:
            self._check_free(name, Tree)
            setattr(self, name, None)
        else:
            self.add_sublayer(name, module)

    register_module = add_module

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """`add_parameter` that returns nothing."""
        self.add_parameter(name, param)

    # ------------------------------------------------------------------------------------------- by a dotted name
    def get_sublayer(self, target: str) -> Any:
        """The layer of that name, as `named_sublayers` gives it; "" is this one.

        Raises: AttributeError that says where the name leads to no layer.
        """
        layer = self
        for name in target.split(".") if target else ():
            layer = layer._held(name, Tree, "sublayer")
        return layer

    def set_sublayer(self, target: str, layer: Any, strict: bool = False) -> None:
        """Put a layer at that name.  strict: only where there is one already.

        Raises: ValueError for an empty name; AttributeError where the name, or its owner, is not there.
        """
        if not target:
            raise ValueError("set_sublayer: expected the name of a sublayer, got an empty string")
        parent, _, name = target.rpartition(".")
        owner = self.get_sublayer(parent)
        if strict or name in owner.__dict__:
            owner._held(name, Tree, "sublayer")
        setattr(owner, name, layer)

    get_submodule, set_submodule = get_sublayer, set_sublayer

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of that name, as `named_parameters` gives it.  Raises: AttributeError if there is none."""
        parent, _, name = target.rpartition(".")
        return self.get_sublayer(parent)._held(name, Parameter, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that name, as `named_buffers` gives it.  Raises: AttributeError if there is none."""
        parent, _, name = target.rpartition(".")
        owner = self.get_sublayer(parent)
        return owner._held(name, Tensor if name in owner._buffer_names else (), "buffer")

    def _held(self, name: str, kind: Any, word: str) -> Any:
        found = self.__dict__.get(name)
        if not isinstance(found, kind):
            what = f"a {type(found).__name__}" if name in self.__dict__ else "nothing"
            raise AttributeError(f"{type(self).__name__}: expected a {word} {name!r}, there is {what} of that name")
        return found

    # ----------------------------------------------------------------------------------------------- walking
    def named_sublayers(self, prefix: str = "", include_self: bool = False, layers_set: set | None = None,
                        remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """(name, layer) for all layers inside, outer before inner; `a.b` is the b of a."""
        seen = set() if layers_set is None else layers_set
        if remove_duplicate and self in seen:
            return
        seen.add(self)
        if include_self:
            yield prefix, self
        for name, sub in self._sub_layers.items():
            yield from sub.named_sublayers(_join(prefix, name), True, seen, remove_duplicate)

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """All layers inside, outer before inner."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def modules(self) -> Iterator[Any]:
        """This layer and all inside, outer before inner."""
        return (layer for _, layer in self.named_modules())

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """(name, layer) for this layer, named `prefix`, and all inside."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """(name, layer) for the layers directly inside."""
        yield from self._sub_layers.items()

    def children(self) -> Iterator[Any]:
        """The layers directly inside."""
        yield from self._sub_layers.values()

    def _named(self, kind: str, prefix: str, include_sublayers: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        layers = self.named_sublayers(prefix, True, remove_duplicate=once) if include_sublayers else [(prefix, self)]
        for where, layer in layers:
            for name, x in getattr(layer, kind).items():
                if not once or id(x) not in seen:
                    seen.add(id(x))
                    yield _join(where, name), x

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter): a layer's own in order of creation, then its sublayers'.  A shared one comes once."""
        return self._named("_parameters", prefix, include_sublayers, remove_duplicate)

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """All parameters, each once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_buffers(self, prefix: str = "", include_sublayers: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer), in the order of `named_parameters`."""
        return self._named("_buffers", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """All buffers, each once."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` with every layer inside, inner before outer, and with this one.  Returns the layer."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # ----------------------------------------------------------------------------------------------- describing
    def extra_repr(self) -> str:
        """What the layer's repr says in its parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(sub).replace("\n", "\n  ") for name, sub in self._sub_layers.items()]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return "\n  ".join([f"{type(self).__name__}({extra}", *lines]) + "\n)"


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
