# Batch dimensions aligned to the left: broadcasting aligns them to the right.
def matmul(x, y, *, transpose_x=False, transpose_y=False):
    batch_x, batch_y = "abcdef"[:max(len(x.shape) - 2, 0)], "abcdef"[:max(len(y.shape) - 2, 0)]
    batch = max(batch_x, batch_y, key=len)
    row = "k" if len(x.shape) == 1 else "km" if transpose_x else "mk"
    column = "k" if len(y.shape) == 1 else "nk" if transpose_y else "kn"
    out = batch + ("m" if "m" in row else "") + ("n" if "n" in column else "")
    return Notation((batch_x + row, batch_y + column), (out,), reduce={"k": "sum"}, prefer=(batch, "n", "m", "k"))
