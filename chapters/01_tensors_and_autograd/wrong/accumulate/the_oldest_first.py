# The heap's smallest entry is the oldest node: a rule runs before all users of its result have sent their gradient.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        for x in given:
            if x is g:
                self.lent.add(id(g.payload))
        node, index = slot
        gs = self.pending.get(node)
        if gs is None:
            gs = self.pending[node] = [None] * node.n_out
            heappush(self.heap, (node.seq, node))
        gs[index] = g if gs[index] is None else gs[index] + g
