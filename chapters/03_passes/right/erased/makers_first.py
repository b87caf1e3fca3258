# First collects who makes what is read.
from minipd.ir.operation import walk_inside


class Touched:
    def erased(self, op):
        read = {value for inner in walk_inside(op) for value in inner.operands_source()}
        makers = {value.get_defining_op() for value in read} - {None}
        self.ops.update(dict.fromkeys(makers))
        for result in (result for maker in makers for result in maker.results()):
            if result.use_count() <= 8:
                self.ops.update(dict.fromkeys(result.all_used_ops()))
