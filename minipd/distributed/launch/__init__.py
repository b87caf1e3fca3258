"""`python -m minipd.distributed.launch`: the launcher with the options of Paddle's."""

from minipd.distributed.launch.main import launch

__all__ = ["launch"]
