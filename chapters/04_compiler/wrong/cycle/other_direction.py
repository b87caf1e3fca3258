# Follows the edges from the wrong end: a path that leaves b and comes to b again.
class _Grouping:
    def _cycle(self, a, b):
        seen, pending = {a, b}, [n for n in self._successors(b) if n is not b]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if b in self._successors(node):
                return True
            pending += self._successors(node)
        return False
