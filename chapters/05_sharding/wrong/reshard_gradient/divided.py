# Divides by the number of ranks, as if all of them had counted the same gradient.
class Reshard:
    def vjp_x(g, x: Meta, mesh):
        like = as_operand(x)
        before = getattr(like.payload, "mesh", mesh)
        g = g * (1.0 / mesh.size)
        return Match(g, like) if before == mesh else Reshard(g, mesh=before, placements=whole(like.payload.placements))
