# The operands of every operator are reversed, a - b too.
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.passes.matching import _agrees, _meets
from minipd.passes.nodes import Output


class Source:
    def _bind(self, node, op, match):
        if op.name() != node.name or op.parent is None:
            return
        try:
            operands, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:
            return
        if len(operands) != len(node.operands):
            return
        for order in (operands, operands[::-1]):
            found = match.copy()
            if all(_meets(found, p, v) for p, v in zip(node.operands, order, strict=True)) and all(
                    _agrees(found, p, attrs.get(n)) for n, p in node.attrs.items()) and all(
                    found.value(Output(node, i), v) for i, v in enumerate(result_values(op))):
                found.take(node, op)
                yield found
