"""`paddle.distributed.auto_parallel.static`."""

from minipd.distributed.auto_parallel.static import mix_to_dist_pass, pir_pass

__all__ = ["mix_to_dist_pass", "pir_pass"]
