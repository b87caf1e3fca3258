"""`paddle.distributed.flex_checkpoint.dcp`."""

from minipd.distributed.flex_checkpoint.dcp import load_state_dict, metadata, save_state_dict, sharded_weight

__all__ = ["load_state_dict", "metadata", "save_state_dict", "sharded_weight"]
