# A reader in a region is overlooked.
class Source:
    def _is_closed(self, match):
        outputs = {match.values[o] for o in self.outputs}
        block = next(iter(match.ops)).parent
        return all(op.parent is block and all(r in outputs or all(
            u.owner() in match.ops or u.owner().parent is not block for u in r.uses) for r in op.results())
            for op in match.ops)
