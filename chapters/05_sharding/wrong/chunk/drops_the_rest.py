# Assumes that n divides: the last row of 5 over 4 belongs to nobody.
def ceil_chunk(n, ways, index):
    step = n // ways
    return step, step * index
