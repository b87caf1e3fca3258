# Takes for granted that an operation makes each operand.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        for o in walk_inside(op):
            for v in o.operands_source():
                source = v.get_defining_op()
                self.ops[source] = None
                for r in source.results():
                    if r.use_count() <= NEIGHBOURS:
                        self._add(r.all_used_ops())
