# A buffer that is not there is a KeyError, which says nothing about the statement.
class _Run:
    def _element(self, where, buffer, index):
        array = self.buffers[buffer]
        at = tuple(int(self.expression(i)) for i in index)
        self._check(len(at) == array.ndim, where, f"{buffer} has {array.ndim} axes")
        self._check(all(0 <= i < n for i, n in zip(at, array.shape, strict=True)), where, f"{at} is outside {buffer}")
        return array, at
