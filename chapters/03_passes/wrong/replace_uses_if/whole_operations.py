# Replaces all operands of an operation of which one use is chosen.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        chosen = [use for use in old.uses if condition(use)]
        if chosen:
            self._replacing(old, new)
        for op in {use.owner() for use in chosen}:
            for use in old.uses:
                if use.owner() is op:
                    use.set_source(new)
        return len(chosen)
