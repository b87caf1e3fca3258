# Gives to inputs that are not reached as well, where one rule serves all inputs; and takes what has come to them.
class Walk:
    def operation(self, op):
        row = op.row
        outputs = result_values(op)
        if not any(r in self.grads for r in outputs):
            return
        inputs = tensor_operands(op)
        wanted = sum(1 << i for i, v in enumerate(inputs) if v in self.reached)
        gs = [self.total(r) if r in self.grads else None for r in outputs]
        if not wanted or all(g is None for g in gs):
            return
        if not row.raw_gradient:
            gs = [g if g is None else self.pinned(r, g) for r, g in zip(outputs, gs)]
        attrs = op_attrs(op)
        for call in row.calls(wanted):
            got = call.fn(gs if row.multi else gs[0], *self.saved(call, inputs, outputs, attrs))
            for i, g in [(call.target, got)] if call.target is not None else enumerate(got):
                if g is not None:
                    self.give(inputs[i], g)
