"""A mypy plugin that knows the three things minipd does by table.

*Rows.*  mypy ignores what a class decorator returns, and would take every call of a row for the construction of an
object.  A class under `@op(...)` gets an unknown base here, so that calling it gives something that serves as anything
(a Tensor, above all; so its operators give anything too, where the other operand would say float or bool), and Row as
the type of the class itself, so that it can be passed where a Row is expected.

*Tensor.*  Its operators and methods are attached by the floors that define them, and listed in a stub; what a floor
keeps on a handle besides needs an unknown base too.

*Layer.*  `register_buffer(name, ...)` and `add_parameter(name, ...)` make attributes.
"""

from mypy.nodes import ARG_POS, Argument, Var
from mypy.plugin import ClassDefContext, Plugin
from mypy.plugins.common import add_method_to_class
from mypy.types import AnyType, TypeOfAny


def is_row(context: ClassDefContext) -> None:
    """Called for each class that `op` decorates."""
    context.cls.info.fallback_to_any = True
    context.cls.info.metaclass_type = context.api.named_type("minipd.framework.row.Row")
    give_anything(context, "__add__", "__sub__", "__mul__", "__truediv__", "__pow__", "__lt__", "__le__", "__gt__",
                  "__ge__")


def is_tensor(context: ClassDefContext) -> None:
    """Called for Tensor; its methods and operators are in a stub (`minipd ops --stubs`)."""
    context.cls.info.fallback_to_any = True


def give_anything(context: ClassDefContext, *operators: str) -> None:
    """The class has these binary operators, of any operand and with any result."""
    anything = AnyType(TypeOfAny.explicit)
    other = Argument(Var("other", anything), anything, None, ARG_POS)
    for name in operators:
        add_method_to_class(context.api, context.cls, name, [other], anything)


def is_layer(context: ClassDefContext) -> None:
    """Called for Layer; its subclasses inherit the unknown base."""
    context.cls.info.fallback_to_any = True


class Tables(Plugin):
    """Hooks the decorator `op`, and the classes Tensor and Layer."""

    def get_class_decorator_hook(self, fullname: str):
        return is_row if fullname == "minipd.framework.row.op" else None

    def get_customize_class_mro_hook(self, fullname: str):
        return {"minipd.framework.tensor.Tensor": is_tensor, "minipd.nn.layer.Layer": is_layer}.get(fullname)


def plugin(version: str) -> type[Plugin]:
    """What mypy asks a plugin module for."""
    return Tables
