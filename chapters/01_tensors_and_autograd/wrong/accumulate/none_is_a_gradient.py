# Takes None for a gradient: the node is visited although nothing has come to it.
class Pass:
    def give(self, slot, g, given):
        if slot is None or self.within is not None and not self.leads(slot):
            return
        for x in given:
            if x is g and g is not None:
                self.lent.add(id(g.payload))
        node, index = slot
        gs = self.pending.get(node)
        if gs is None:
            gs = self.pending[node] = [None] * node.n_out
            heappush(self.heap, (-node.seq, node))
        gs[index] = g if gs[index] is None else gs[index] + g
