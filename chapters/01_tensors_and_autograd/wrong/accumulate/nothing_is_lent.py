# Does not note which gradients were passed on as they are: two leaves end up with one array as their `.grad`.
class Pass:
    def give(self, slot, g, given):
        if slot is None or g is None or self.within is not None and not self.leads(slot):
            return
        node, index = slot
        gs = self.pending.get(node)
        if gs is None:
            gs = self.pending[node] = [None] * node.n_out
            heappush(self.heap, (-node.seq, node))
        gs[index] = g if gs[index] is None else gs[index] + g
