# Effects are forgotten: of two collectives one is left, and the other ranks wait for ever.
from minipd.framework.row import Trait
from minipd.ir.traits import IrTrait
from minipd.passes.library.common_subexpression_elimination import BUNDLES


def _repeatable(op):
    return (op.row is not None or op.name() in BUNDLES) and not op.info.traits & {Trait.RANDOM, IrTrait.READS_STATE}
