# Sorts the group by rank: chunks then come together in another order than along the axis.
class ProcessMesh:
    def group(self, rank, axis):
        at = self.coordinate(rank)
        same = [r for r in self.process_ids
                if all(a == b for i, (a, b) in enumerate(zip(self.coordinate(r), at, strict=True)) if i != axis)]
        return tuple(sorted(same))
