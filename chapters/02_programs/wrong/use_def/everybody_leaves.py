# Clears the whole list of the old value: its other users are forgotten.
class OpOperand:
    def set_source(self, value):
        if self._source is not None:
            self._source._uses.clear()
        self._source = value
        if value is not None:
            value._uses[self] = None
