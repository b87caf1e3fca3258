# Looks at all readers of a value, however many: quadratic where all read one.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        for o in walk_inside(op):
            for v in o.operands_source():
                source = v.get_defining_op()
                if source is not None:
                    self.ops[source] = None
                    for r in source.results():
                        self._add(r.all_used_ops())
