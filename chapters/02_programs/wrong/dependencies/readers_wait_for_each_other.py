# Two reads of a place keep their order, though nothing would change if they did not.
class Dependencies:
    def _depend(self, instruction):
        now = instruction.index
        for place, writes, what in sorted(self._accesses(instruction.item), key=lambda a: a.writes):
            for part, on in self._parts(place, what):
                last = self._places.setdefault(part, Place())
                for reader in last.readers:
                    self._edge(reader, now, "anti", on)
                self._edge(last.writer, now, "output" if writes else "true", on)
                if writes:
                    last.writer, last.readers = now, []
                else:
                    last.readers.append(now)
