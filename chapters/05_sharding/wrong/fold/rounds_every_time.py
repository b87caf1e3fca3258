# float16 stays float16: each small part is rounded away on its own.
def fold(values, op, out=None):
    total = values[0].copy()
    for x in values[1:]:
        total = np.asarray(REDUCTIONS[op](total, x))
    return total
