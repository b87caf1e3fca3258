"""`paddle.distributed.flex_checkpoint.dcp.load_state_dict`."""

from minipd.dist.checkpoint.load import load_merged_state_dict, load_state_dict

__all__ = ["load_merged_state_dict", "load_state_dict"]
