# Adds in place: the tensor may be the gradient of somebody else as well (c = a + b gives one g to both).
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
            heappush(self.heap, (-node.seq, node))
        if gs[index] is None:
            gs[index] = g
        else:
            gs[index].add_(g)
