# If one use is chosen, all are replaced.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        if chosen:
            self.replace_all_uses(old, new)
        return len(chosen)
