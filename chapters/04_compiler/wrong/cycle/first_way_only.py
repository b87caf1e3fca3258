# Follows the first way out of each, and no other.
class PatternGraph:
    def leads_around(self, a, b):
        seen = {a}
        node = next((n for n in self.successors(a) if n is not b and n is not a), None)
        while node is not None and node not in seen:
            seen.add(node)
            followers = self.successors(node)
            if b in followers:
                return True
            node = followers[0] if followers else None
        return False
