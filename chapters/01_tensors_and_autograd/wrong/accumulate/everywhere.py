# Visits nodes that nobody asked for: a gradient flows through a tensor that counts as a constant.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None:
            return
        for x in given:
            if x is g:
                self.lent.add(id(g.payload))
        node, index = slot
        gs = self.pending.get(node)
        if gs is None:
            gs = self.pending[node] = [None] * node.n_out
            heappush(self.heap, (-node.seq, node))
        gs[index] = g if gs[index] is None else gs[index] + g
