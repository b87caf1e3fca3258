# Looks at the first result of each operation only.
class Source:
    def _is_closed(self, match):
        outputs = {match.values[o] for o in self.outputs}
        block = next(iter(match.ops)).parent
        return all(op.parent is block and (op.result(0) in outputs or all(u in match.ops
                                                                          for u in op.result(0).all_used_ops()))
                   for op in match.ops)
