# Attributes are not compared: a sum over another axis matches.
from minipd.framework.row import Trait
from minipd.ir.schema import result_values, tensor_operands
from minipd.passes.matching import _meets
from minipd.passes.nodes import Output


class Source:
    def _bind(self, node, op, match):
        if op.name() != node.name or op.parent is None:
            return
        try:
            operands = tensor_operands(op)
        except ValueError:
            return
        if len(operands) != len(node.operands):
            return
        orders = [operands]
        if Trait.COMMUTATIVE in node.row.traits:
            orders.append(operands[::-1])
        for order in orders:
            found = match.copy()
            if all(_meets(found, p, v) for p, v in zip(node.operands, order, strict=True)) and all(
                    found.value(Output(node, i), v) for i, v in enumerate(result_values(op))):
                found.take(node, op)
                yield found
