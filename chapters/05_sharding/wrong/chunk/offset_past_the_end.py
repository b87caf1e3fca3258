# The size is right, but an empty chunk stands behind the end of the tensor.
def ceil_chunk(n, ways, index):
    step = -(-n // ways)
    return max(0, min(step, n - step * index)), step * index
