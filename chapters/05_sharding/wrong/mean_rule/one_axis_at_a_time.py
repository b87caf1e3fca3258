# Looks at the first axis that splits only: 6 rows over 2 x 2 are 2, 1, 2, 1.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)
    if any(same(x.shape[i], 0) for i in axis):
        return Notation((word,), (out,), whole=gone)

    def splits(letter, ways):
        return letter not in gone or x.shape[word.index(letter)] % ways[0] == 0

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "avg"), decompose=gone, splits=splits)
