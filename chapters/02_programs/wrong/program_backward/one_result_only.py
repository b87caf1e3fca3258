# Hands a rule the gradient of the first result, also where the row has several.
class Walk:
    def operation(self, op):
        row = op.row
        outputs = result_values(op)
        if not any(r in self.grads for r in outputs):
            return
        inputs = tensor_operands(op)
        wanted = sum(1 << i for i, v in enumerate(inputs) if v in self.reached)
        gs = [self.total(r) if r in self.reached else None for r in outputs]
        if not wanted or all(g is None for g in gs):
            return
        if not row.raw_gradient:
            gs = [g if g is None else self.pinned(r, g) for r, g in zip(outputs, gs)]
        attrs = op_attrs(op)
        for call in row.calls(wanted):
            got = call.fn(gs[0], *self.saved(call, inputs, outputs, attrs))
            pairs = [(call.target, got)] if call.target is not None else list(enumerate(got))
            for i, g in pairs:
                if g is not None and inputs[i] in self.reached:
                    self.give(inputs[i], g)
