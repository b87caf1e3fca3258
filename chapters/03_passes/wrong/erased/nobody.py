# Forgets them all: the next sweep finds what this one has made possible, and a chain of n takes n sweeps.


class Touched:
    def erased(self, op):
        self.ops.pop(op, None)
