"""`paddle.distributed.flex_checkpoint.dcp.save_state_dict`."""

from minipd.dist.checkpoint.save import save_state_dict

__all__ = ["save_state_dict"]
