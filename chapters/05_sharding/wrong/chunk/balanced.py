# The first ranks get a row more, as in numpy.array_split: sensible, but not the rule that everything else follows.
def ceil_chunk(n, ways, index):
    small, extra = divmod(n, ways)
    return small + (index < extra), small * index + min(index, extra)
