# On a conflict k wins: every such product leaves a Partial that somebody must reduce.
def matmul(x, y, *, transpose_x=False, transpose_y=False):
    (batch_x, batch_y), batch = broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    row = "k" if len(x.shape) == 1 else "km" if transpose_x else "mk"
    column = "k" if len(y.shape) == 1 else "nk" if transpose_y else "kn"
    out = batch + ("m" if "m" in row else "") + ("n" if "n" in column else "")
    return Notation((batch_x + row, batch_y + column), (out,), reduce={"k": "sum"}, prefer=("k", batch, "n", "m"))
