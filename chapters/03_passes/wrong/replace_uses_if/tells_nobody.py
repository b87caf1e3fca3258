# Tells no listener: the driver does not look at the users again.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        for use in chosen:
            use.set_source(new)
        return len(chosen)
