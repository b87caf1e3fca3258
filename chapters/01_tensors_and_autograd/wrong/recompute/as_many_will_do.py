# Counts the values only: one of another shape or dtype passes.
class _Run:
    def _again(self):
        for x, version in self.versions:
            if x.inplace_version != version:
                raise RuntimeError(f"recompute: {x.name} was modified in place")
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
        if len(saved) != len(self.metas):
            raise RuntimeError("recompute: the second run saved other values")
        return saved
