# An operation that is pure may still draw random numbers, or read what is written in between.
from minipd.ir.schema import is_pure
from minipd.passes.library.common_subexpression_elimination import BUNDLES


def _repeatable(op):
    return (op.row is not None or op.name() in BUNDLES) and is_pure(op)
