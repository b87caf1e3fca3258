# Only the first index is compared with its extent.
class _Run:
    def _element(self, where, buffer, index):
        self._check(buffer in self.buffers, where, f"no buffer {buffer} here")
        array = self.buffers[buffer]
        at = tuple(int(self.expression(i)) for i in index)
        self._check(len(at) == array.ndim, where, f"{buffer} has {array.ndim} axes")
        self._check(not at or 0 <= at[0] < array.shape[0], where, f"{at} is outside {buffer}")
        return array, at
