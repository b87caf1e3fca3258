# Right values, but x is gathered first: all of it is sent, where one number per result would do.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)
    return Notation((word,), (out,), whole=gone)
