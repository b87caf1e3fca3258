# Forgets the neighbours: an operand with one reader less.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        for o in walk_inside(op):
            for v in o.operands_source():
                if v.get_defining_op() is not None:
                    self.ops[v.get_defining_op()] = None
