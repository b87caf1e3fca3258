# Tells listeners when those who used the old value cannot be seen any more.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        for use in chosen:
            use.set_source(new)
        if chosen:
            self._replacing(old, new)
        return len(chosen)
