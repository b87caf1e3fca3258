# Every rank says what it holds: what all have is then counted once for each.
class Step:
    def share(self, loss):
        return 0.0 if loss is None else float(loss.held().local)
