"""`python -m minipd.distributed.launch --nproc_per_node 2 script.py`."""

from minipd.distributed.launch.main import launch

launch()
