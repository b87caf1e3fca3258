# Counts per sequence and takes the mean: a sequence with one token then weighs as much as a full one.
class Step:
    def count(self, labels):
        return np.array(max((labels != IGNORED).sum(-1).mean(), 1), current().default_dtype)
