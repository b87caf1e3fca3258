# Takes the dtype with more bits, whatever its kind: int64 + float32 becomes int64 and cuts off the fractions.
def promote(a, b):
    return a if a.itemsize >= b.itemsize else b
