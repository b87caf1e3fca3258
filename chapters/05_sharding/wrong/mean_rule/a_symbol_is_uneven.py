# A size that is not known yet is no number that divides: what is traced with a symbol is taken apart, always.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)
    if any(same(x.shape[i], 0) for i in axis):
        return Notation((word,), (out,), whole=gone)

    def splits(letter, ways):
        n = x.shape[word.index(letter)]
        return letter not in gone or (isinstance(n, int) and n % math.prod(ways) == 0)

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "avg"), decompose=gone, splits=splits)
