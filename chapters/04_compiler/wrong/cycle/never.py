# No path is ever looked for.
class _Grouping:
    def _cycle(self, a, b):
        return False
