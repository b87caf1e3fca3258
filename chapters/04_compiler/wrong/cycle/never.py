# No path is ever looked for.
class PatternGraph:
    def leads_around(self, a, b):
        return False
