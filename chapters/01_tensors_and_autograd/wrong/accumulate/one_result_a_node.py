# Takes a node that is waiting for one whose every result has a gradient: with two results, the second has none yet.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        if any(x is g for x in given):
            self.lent.add(id(g.payload))
        node, index = slot
        gs = self.pending.get(node)
        if gs is None:
            gs = self.pending[node] = [None] * node.n_out
            heappush(self.heap, (-node.seq, node))
            gs[index] = g
        else:
            gs[index] = gs[index] + g
