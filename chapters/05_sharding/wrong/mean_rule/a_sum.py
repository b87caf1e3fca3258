# Adds the means of the ranks up: right on one rank only.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)
    if any(same(x.shape[i], 0) for i in axis):
        return Notation((word,), (out,), whole=gone)

    def splits(letter, ways):
        return letter not in gone or x.shape[word.index(letter)] % math.prod(ways) == 0

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "sum"), decompose=gone, splits=splits)
