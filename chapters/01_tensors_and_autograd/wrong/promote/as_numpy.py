# Takes numpy's rule, in which int64 beside float32 gives float64: half the memory saved by float32 is gone again.
def promote(a, b):
    return np.promote_types(a, b)
