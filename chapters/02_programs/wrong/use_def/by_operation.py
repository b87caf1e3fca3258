# Enters the operation instead of the operand: x * x is two uses, and only one would be listed.
class OpOperand:
    def set_source(self, value):
        if self._source is not None:
            self._source._uses.pop(self._owner, None)
        self._source = value
        if value is not None:
            value._uses[self._owner] = None
