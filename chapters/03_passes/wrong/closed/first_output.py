# Only the first result of the rule is an output.
class Source:
    def _is_closed(self, match):
        output = match.values[self.outputs[0]]
        block = next(iter(match.ops)).parent
        return all(op.parent is block and all(r is output or all(u.owner() in match.ops for u in r.uses)
                                              for r in op.results()) for op in match.ops)
