# Looks at paths through one other, not through two.
class PatternGraph:
    def leads_around(self, a, b):
        return any(follower is b for node in self.successors(a) if node is not a and node is not b
                   for follower in self.successors(node))
