# Whoever reads it: a value in the middle is computed twice, or gone while it is read.
class Source:
    def _is_closed(self, match):
        block = next(iter(match.ops)).parent
        return all(op.parent is block for op in match.ops)
