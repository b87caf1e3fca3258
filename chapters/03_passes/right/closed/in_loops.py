# The same in loops.
class Source:
    def _is_closed(self, match):
        block = next(iter(match.ops)).parent
        outputs = [match.values[output] for output in self.outputs]
        for op in match.ops:
            if op.parent is not block:
                return False
            for result in op.results():
                if any(result is output for output in outputs):
                    continue
                for user in result.all_used_ops():
                    if user not in match.ops:
                        return False
        return True
