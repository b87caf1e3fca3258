# Whoever else reads a is a cycle, though nothing leads from there to b.
class PatternGraph:
    def leads_around(self, a, b):
        return any(node is not a and node is not b for node in self.successors(a))
