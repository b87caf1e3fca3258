# Two dimensions only: a batch of matrices has no letters for its batch.
def matmul(x, y, *, transpose_x=False, transpose_y=False):
    row = "km" if transpose_x else "mk"
    column = "nk" if transpose_y else "kn"
    return Notation((row, column), ("mn",), reduce={"k": "sum"}, prefer=("n", "m", "k"))
