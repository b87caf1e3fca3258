# Tells the new value, and forgets to tell the old one: it goes on listing a use that is none.
class OpOperand:
    def set_source(self, value):
        self._source = value
        if value is not None:
            value._uses[self] = None
