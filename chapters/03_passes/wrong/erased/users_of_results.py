# Looks at those who read the results: there are none any more.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        for o in walk_inside(op):
            for r in o.results():
                self._add(r.all_used_ops())
