# A rank behind the end gets a negative number of rows.
def ceil_chunk(n, ways, index):
    step = -(-n // ways)
    return min(step, n - step * index), step * index
