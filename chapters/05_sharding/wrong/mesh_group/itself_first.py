# Puts the rank itself first: each member then has another order, and they no longer mean the same group.
class ProcessMesh:
    def group(self, rank, axis):
        at = self.coordinate(rank)
        others = [r for r in self._grid[at[:axis] + (slice(None),) + at[axis + 1:]].tolist() if r != rank]
        return (rank, *others)
