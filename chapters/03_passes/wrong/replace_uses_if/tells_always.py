# Tells listeners of a change where there is none.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        self._replacing(old, new)
        for use in chosen:
            use.set_source(new)
        return len(chosen)
