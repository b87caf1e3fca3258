"""`paddle.distributed.auto_parallel.process_mesh`."""

from minipd.dist.mesh import ProcessMesh

__all__ = ["ProcessMesh"]
