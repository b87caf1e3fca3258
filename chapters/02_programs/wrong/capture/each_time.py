# A new input for every use: a weight that is read three times becomes three inputs.
class Trace:
    def _capture(self, payload):
        name = self._new_name("captured")
        self.captures[name] = payload
        holder = self._seen.get(id(payload))
        if holder is not None and holder.payload is payload:
            self.holders[name] = holder
        return self.input(name, payload)
