# The extent itself is taken for an index.
class _Run:
    def _element(self, where, buffer, index):
        self._check(buffer in self.buffers, where, f"no buffer {buffer} here")
        array = self.buffers[buffer]
        at = tuple(int(self.expression(i)) for i in index)
        self._check(len(at) == array.ndim, where, f"{buffer} has {array.ndim} axes")
        self._check(all(0 <= i <= n for i, n in zip(at, array.shape, strict=True)), where, f"{at} is outside {buffer}")
        return array, at
