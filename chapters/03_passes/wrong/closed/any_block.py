# Operations of several blocks: a branch is joined with what stands before it.
class Source:
    def _is_closed(self, match):
        outputs = {match.values[o] for o in self.outputs}
        return all(r in outputs or all(u.owner() in match.ops for u in r.uses)
                   for op in match.ops for r in op.results())
