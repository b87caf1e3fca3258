# Every value in the middle has one reader: what the match itself reads twice is refused.
class Source:
    def _is_closed(self, match):
        outputs = {match.values[o] for o in self.outputs}
        block = next(iter(match.ops)).parent
        return all(op.parent is block and all(r in outputs or len(r.all_used_ops()) == 1 for r in op.results())
                   for op in match.ops)
