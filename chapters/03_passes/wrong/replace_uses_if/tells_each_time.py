# Tells listeners once for each use.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        for use in chosen:
            self._replacing(old, new)
            use.set_source(new)
        return len(chosen)
