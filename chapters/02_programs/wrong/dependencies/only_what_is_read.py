# A write waits for nobody: the bytes are gone before the last reader has seen them.
class Dependencies:
    def _depend(self, instruction):
        now = instruction.index
        for place, writes, what in sorted(self._accesses(instruction.item), key=lambda a: a.writes):
            for part, on in self._parts(place, what):
                last = self._places.setdefault(part, Place())
                if writes:
                    last.writer = now
                else:
                    self._edge(last.writer, now, "true", on)
