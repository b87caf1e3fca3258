# Counts the ignored labels too: a batch with much padding gets a small loss, and small gradients.
class Step:
    def count(self, labels):
        return np.array(labels.size, current().default_dtype)
