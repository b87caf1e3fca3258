# Two writes of one place, with no read between, may change places.
class Dependencies:
    def _depend(self, instruction):
        now = instruction.index
        for place, writes, what in sorted(self._accesses(instruction.item), key=lambda a: a.writes):
            for part, on in self._parts(place, what):
                last = self._places.setdefault(part, Place())
                if not writes:
                    self._edge(last.writer, now, "true", on)
                    last.readers.append(now)
                    continue
                for reader in last.readers:
                    self._edge(reader, now, "anti", on)
                last.writer, last.readers = now, []
