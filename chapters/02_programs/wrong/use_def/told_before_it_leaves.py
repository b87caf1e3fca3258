# Enters itself in the new list first and leaves the old one then: where both are one value, it ends in neither.
class OpOperand:
    def set_source(self, value):
        old, self._source = self._source, value
        if value is not None:
            value._uses[self] = None
        if old is not None:
            old._uses.pop(self, None)
