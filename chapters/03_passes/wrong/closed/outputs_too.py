# Outputs may have no readers outside either: then no result is ever used, and nothing matches.
class Source:
    def _is_closed(self, match):
        block = next(iter(match.ops)).parent
        return all(op.parent is block and all(u.owner() in match.ops for r in op.results() for u in r.uses)
                   for op in match.ops)
