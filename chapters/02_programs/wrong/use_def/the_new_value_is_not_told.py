# Takes itself off the old list, and forgets to enter itself in the new one.
class OpOperand:
    def set_source(self, value):
        if self._source is not None:
            self._source._uses.pop(self, None)
        self._source = value
