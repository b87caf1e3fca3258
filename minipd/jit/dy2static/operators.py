"""What transformed code calls: the converters, under the names that stand in it as `_jst.If`, `_jst.While`, ..."""

from minipd.jit.dy2static.asserts import Assert, Told
from minipd.jit.dy2static.branches import If, IfExp
from minipd.jit.dy2static.calls import Call
from minipd.jit.dy2static.changes import Change, Rebind
from minipd.jit.dy2static.logic import And, Compare, In, Not, NotIn, Or
from minipd.jit.dy2static.loops import For, While
from minipd.jit.dy2static.reading import Get, Has, Item
from minipd.jit.dy2static.reading import attribute as Attribute

__all__ = ["And", "Assert", "Attribute", "Call", "Change", "Compare", "For", "Get", "Has", "If", "IfExp", "In", "Item",
           "Not", "NotIn", "Or", "Rebind", "Told", "While"]
