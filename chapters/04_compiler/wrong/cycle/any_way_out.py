# Whoever else reads a is a cycle, though nothing leads from there to b.
class _Grouping:
    def _cycle(self, a, b):
        return any(node is not a and node is not b for node in self._successors(a))
