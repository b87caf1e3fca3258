"""Checkpoints of distributed tensors: a folder that every mesh can read.

    values.py           what a rank holds of a tensor, as blocks of the global one, and how blocks are put together
    sharded_weight.py   a block of a tensor that somebody splits by hand
    nested.py           a nested dict as a flat one
    meeting.py          the ranks that save or load together
    metadata.py         which blocks there are of what, and in which file: Paddle's classes, and how they are written
    folder.py           the files: their names, what is in them, and how they come into place
    save.py             save_state_dict
    load.py             load_state_dict, load_merged_state_dict

A rank writes what it holds; of blocks that several ranks hold, one of them.  A rank that reads wants blocks of its own,
under another mesh maybe: it puts them together from what overlaps.  Whatever mesh reads has, bit by bit, what was
saved.
"""

from minipd.dist.checkpoint.load import load_merged_state_dict, load_state_dict
from minipd.dist.checkpoint.save import save_state_dict

__all__ = ["load_merged_state_dict", "load_state_dict", "save_state_dict"]
