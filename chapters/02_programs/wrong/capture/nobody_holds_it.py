# Does not say which tensor held the array: what that tensor holds later is never read.
class Trace:
    def _capture(self, payload):
        found = self._captured.get(id(payload))
        if found is None:
            name = self._new_name("captured")
            self.captures[name] = payload
            found = self._captured[id(payload)] = self.input(name, payload)
        return found
