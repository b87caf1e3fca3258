# Looks at paths through one other, not through two.
class _Grouping:
    def _cycle(self, a, b):
        return any(follower is b for node in self._successors(a) if node is not a and node is not b
                   for follower in self._successors(node))
