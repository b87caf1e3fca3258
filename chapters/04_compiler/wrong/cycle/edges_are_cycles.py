# An edge from one to the other counts as a cycle: nothing is fused with what it reads.
class PatternGraph:
    def leads_around(self, a, b):
        seen, pending = {a}, self.successors(a)
        while pending:
            node = pending.pop()
            if node is b:
                return True
            if node not in seen:
                seen.add(node)
                pending += self.successors(node)
        return False
