# Two buffers that have some bytes in common are taken for different places.
class Dependencies:
    def _depend(self, instruction):
        now = instruction.index
        for place, writes, on in sorted(self._accesses(instruction.item), key=lambda a: a.writes):
            last = self._places.setdefault(place, Place())
            if not writes:
                self._edge(last.writer, now, "true", on)
                last.readers.append(now)
                continue
            for reader in last.readers:
                self._edge(reader, now, "anti", on)
            if not last.readers:
                self._edge(last.writer, now, "output", on)
            last.writer, last.readers = now, []
