# Ignores the window: every rank draws the first numbers of the stream, so all shards are equal.
def _runs(shape, window):
    return np.zeros(1, np.int64), int(np.prod(shape))
