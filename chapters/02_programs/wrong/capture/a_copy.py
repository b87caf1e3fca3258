# Binds the input to a copy of what the tensor held while it was traced: a constant in disguise.
class Trace:
    def _capture(self, payload):
        found = self._captured.get(id(payload))
        if found is None:
            name = self._new_name("captured")
            self.captures[name] = np.array(payload)
            self._kept = getattr(self, "_kept", []) + [payload]
            found = self._captured[id(payload)] = self.input(name, payload)
        return found
