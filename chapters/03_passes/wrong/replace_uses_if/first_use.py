# Walks along the uses while it changes them: the first that is not chosen ends it.
class PatternRewriter:
    def replace_uses_if(self, old, new, condition):
        number = 0
        if any(condition(use) for use in old.uses):
            self._replacing(old, new)
        while old.first_use() is not None and condition(old.first_use()):
            old.first_use().set_source(new)
            number += 1
        return number
