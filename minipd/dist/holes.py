"""Why the operators of distribution rightly lack a column (see `minipd/ops/holes.py`)."""

from minipd.framework.row import Trait
from minipd.ops.holes import explain

__all__: list[str] = []

explain("vjp", "a collective works on local values, below the tape: gradients see global values only", Trait.COMM)
explain("kernel_out", "a collective returns what its communicator received", Trait.COMM)
explain("kernel_out", "a mark on a global program: the identity, replaced before it runs", "align", "match",
        "reshard", "shard_tensor")
explain("spmd", "a collective is what placements are turned into, it has none of its own", Trait.COMM)
for _column in ("kernel_out", "spmd"):
    explain(_column, "it stands around what a rank does for itself, in a program whose placements are settled: nothing "
            "is left to run or to place", "dtensor_from_local", "dtensor_to_local")
