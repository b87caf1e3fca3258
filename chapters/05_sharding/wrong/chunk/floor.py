# Rounds down, and gives the last rank whatever is left: with 5 over 4 that is 1, 1, 1, 2.
def ceil_chunk(n, ways, index):
    step = n // ways
    return (n - step * index if index == ways - 1 else step), step * index
