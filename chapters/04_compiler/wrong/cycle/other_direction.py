# Follows the edges from the wrong end: a path that leaves b and comes to b again.
class PatternGraph:
    def leads_around(self, a, b):
        seen, pending = {a, b}, [n for n in self.successors(b) if n is not b]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if b in self.successors(node):
                return True
            pending += self.successors(node)
        return False
