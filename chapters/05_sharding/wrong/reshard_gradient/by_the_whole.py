# Brings the gradient to Replicate first: an all_reduce where a reduce_scatter would do, at half the traffic.
from minipd.dist.placements import Replicate


class Reshard:
    def vjp_x(g, x: Meta, mesh):
        like = as_operand(x).payload
        g = Reshard(g, mesh=mesh, placements=(Replicate(),) * mesh.ndim)
        return Reshard(g, mesh=getattr(like, "mesh", mesh), placements=whole(like.placements))
