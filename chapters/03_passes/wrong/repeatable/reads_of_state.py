# Whatever is not random and has no effect: two reads of a parameter, too, though it is written between them.
from minipd.framework.row import Trait
from minipd.ir.schema import is_pure


def _repeatable(op):
    return is_pure(op) and not op.info.traits & {Trait.RANDOM, Trait.COMM} and op.num_results() > 0 and (
        op.name() != "pd_op.data")
