# Where ranks have different numbers of elements it gathers them, instead of having the mean taken apart.
def reduce_mean(x, *, axis, keepdim=False):
    word, out, gone = over(x, axis, keepdim)

    def splits(letter, ways):
        return letter not in gone or x.shape[word.index(letter)] % math.prod(ways) == 0

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "avg"), splits=splits)
