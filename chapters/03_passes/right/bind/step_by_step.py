# One condition after the other.
from minipd.passes.matching import _agrees, _meets, _rest, spread
from minipd.passes.nodes import Output


class Source:
    def _bind(self, node, op, match):
        if op.name() != node.name or op.parent is None:
            return
        try:
            operands, attrs = node.read(op)
        except ValueError:
            return
        results, wanted = node.results_of(op), spread(node, len(operands))
        if wanted is None or not node.number_fits(len(results)):
            return
        once = not node.commutes or operands[0] is operands[1]
        for order in ([operands] if once else [operands, operands[::-1]]):
            found = match.copy()
            fits = True
            for pattern, value in zip(wanted, order, strict=True):
                fits = fits and _meets(found, pattern, value)
            for name, pattern in node.attrs.items():
                fits = fits and _agrees(found, pattern, attrs.get(name))
            for i, value in enumerate(results):
                fits = fits and found.value(Output(node, i), value)
            if fits and (node.plain or _rest(found, node, op, len(operands), len(results))):
                found.take(node, op)
                yield found
