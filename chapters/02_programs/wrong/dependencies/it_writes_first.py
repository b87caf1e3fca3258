# An instruction that reads and writes a place is noted as its writer first, and then reads what it has written itself.
class Dependencies:
    def _depend(self, instruction):
        now = instruction.index
        for place, writes, what in sorted(self._accesses(instruction.item), key=lambda a: not a.writes):
            for part, on in self._parts(place, what):
                last = self._places.setdefault(part, Place())
                if not writes:
                    self._edge(last.writer, now, "true", on)
                    last.readers.append(now)
                    continue
                for reader in last.readers:
                    self._edge(reader, now, "anti", on)
                if not last.readers:
                    self._edge(last.writer, now, "output", on)
                last.writer, last.readers = now, []
