# Takes token 0 for padding: it is a token like any other.
class Step:
    def count(self, labels):
        return np.array(max(int((labels > 0).sum()), 1), current().default_dtype)
