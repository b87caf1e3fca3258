# Makes parts of a sum of the gradient where x was parts of a sum: right in value, and added up again at every use.
class Reshard:
    def vjp_x(g, x: Meta, mesh):
        before = as_operand(x).payload
        return Reshard(g, mesh=getattr(before, "mesh", mesh), placements=before.placements)
