# One walk over the uses, which tells at the first that is chosen.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        number = 0
        for use in old.uses:
            if condition(use):
                if not number:
                    self._replacing(old, new)
                use.set_source(new)
                number += 1
        return number
