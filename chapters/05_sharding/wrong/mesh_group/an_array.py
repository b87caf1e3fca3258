# An array, which cannot be the key under which a communicator remembers the group.
class ProcessMesh:
    def group(self, rank, axis):
        at = self.coordinate(rank)
        return self._grid[at[:axis] + (slice(None),) + at[axis + 1:]]
