"""`paddle.distributed.auto_parallel.static.mix_to_dist_pass`."""

from minipd.dist.static.passes import apply_mix2dist_pass

__all__ = ["apply_mix2dist_pass"]
