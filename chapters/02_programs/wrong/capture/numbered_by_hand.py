# Numbers the captured tensors itself, and takes a name that the caller has given to an input.
class Trace:
    def _capture(self, payload):
        found = self._captured.get(id(payload))
        if found is None:
            name = f"captured_{len(self.captures)}"
            self.captures[name] = payload
            holder = self._seen.get(id(payload))
            if holder is not None and holder.payload is payload:
                self.holders[name] = holder
            found = self._captured[id(payload)] = self.input(name, payload)
        return found
