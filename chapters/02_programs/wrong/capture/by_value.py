# Two tensors that hold equal numbers become one input; when one of them changes, both do.
class Trace:
    def _capture(self, payload):
        for other, name in [(p, n) for n, p in self.captures.items()]:
            if other.shape == payload.shape and (np.asarray(other) == np.asarray(payload)).all():
                return self._captured[id(other)]
        name = self._new_name("captured")
        self.captures[name] = payload
        holder = self._seen.get(id(payload))
        if holder is not None and holder.payload is payload:
            self.holders[name] = holder
        found = self._captured[id(payload)] = self.input(name, payload)
        return found
