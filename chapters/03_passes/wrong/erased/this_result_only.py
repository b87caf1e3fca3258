# Looks at those who read the same value, not at those of the other results.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        for o in walk_inside(op):
            for v in o.operands_source():
                source = v.get_defining_op()
                if source is not None:
                    self.ops[source] = None
                    if v.use_count() <= NEIGHBOURS:
                        self._add(v.all_used_ops())
