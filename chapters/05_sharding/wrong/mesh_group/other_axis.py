# Rows and columns mixed up: the ranks that share the coordinate along `axis`, not those that differ in it.
class ProcessMesh:
    def group(self, rank, axis):
        at = self.coordinate(rank)
        return tuple(r for r in self.process_ids if self.coordinate(r)[axis] == at[axis])
