# Asks even chunks of dimensions, too, that stay: a batch of 5 rows is gathered for the mean of its columns.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)
    if any(same(x.shape[i], 0) for i in axis):
        return Notation((word,), (out,), whole=gone)

    def splits(letter, ways):
        return x.shape[word.index(letter)] % math.prod(ways) == 0

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "avg"), decompose=gone, splits=splits)
