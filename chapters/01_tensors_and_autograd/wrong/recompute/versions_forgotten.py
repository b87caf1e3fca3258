# Repeats the call with whatever is in its arguments now.
class _Run:
    def _again(self):
        saved = []
        rng = current().rng
        before = rng.get_state()
        try:
            if self.random is not None:
                rng.set_state(self.random)
            with using(grad=True), saved_tensors_hooks(saved.append, self._unread):
                self.function(*map(_separate, self.args), **{k: _separate(v) for k, v in self.kwargs.items()})
        finally:
            rng.set_state(before)
        if [(tuple(x.payload.shape), x.payload.dtype) for x in saved] != self.metas:
            raise RuntimeError("recompute: the second run saved other values")
        return saved
