# Only calls of rows: the bundles in front of concat stay two, and so do the concats.
from minipd.framework.row import Trait
from minipd.ir.schema import is_pure
from minipd.ir.traits import IrTrait


def _repeatable(op):
    return op.row is not None and is_pure(op) and not op.info.traits & {Trait.RANDOM, Trait.COMM, IrTrait.READS_STATE}
