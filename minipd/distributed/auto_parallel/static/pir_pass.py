"""`paddle.distributed.auto_parallel.static.pir_pass`, and `apply_dist2dense_pass`, which Paddle has in C++."""

from typing import Any

from minipd.dist.static.passes import (
    apply_completion_pass,
    apply_dist2dense_pass,
    apply_partition_pass,
    apply_remove_other_ranks_pass,
    apply_reshard_pass,
)

__all__ = ["ReshardPasses", "RemovePasses", "apply_completion_pass", "apply_dist2dense_pass", "apply_partition_pass",
           "apply_remove_other_ranks_pass", "apply_reshard_pass"]


class ReshardPasses:
    """Paddle's name for what makes communication of reshards."""

    @staticmethod
    def apply_reshard_pass(dist_program: Any, global_params_grads: Any = None) -> int:
        """See `apply_reshard_pass`.   global_params_grads: accepted; gradients are not followed by it."""
        return apply_reshard_pass(dist_program)


class RemovePasses:
    """Paddle's name for what removes other ranks' operations."""

    @staticmethod
    def apply_all(dist_main_program: Any, dist_startup_program: Any = None, dist_params_grads: Any = ()) -> int:
        """See `apply_remove_other_ranks_pass`.   The others: accepted; a startup program has nothing to remove."""
        return apply_remove_other_ranks_pass(dist_main_program)
