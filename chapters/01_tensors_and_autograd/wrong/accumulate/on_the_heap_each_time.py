# Puts the node on the heap for every contribution, so that it is taken twice.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        for x in given:
            if x is g:
                self.lent.add(id(g.payload))
        node, index = slot
        gs = self.pending.setdefault(node, [None] * node.n_out)
        gs[index] = g if gs[index] is None else gs[index] + g
        heappush(self.heap, (-node.seq, node))
