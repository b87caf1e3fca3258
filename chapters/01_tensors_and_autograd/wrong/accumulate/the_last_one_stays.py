# A second contribution replaces the first: x + x has the gradient 1.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        for x in given:
            if x is g:
                self.lent.add(id(g.payload))
        node, index = slot
        if node not in self.pending:
            self.pending[node] = [None] * node.n_out
            heappush(self.heap, (-node.seq, node))
        self.pending[node][index] = g
