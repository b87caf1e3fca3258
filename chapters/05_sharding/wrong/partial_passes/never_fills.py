# Does not look at `fill`: a sum of gradients, one of which is whole, is reduced operand by operand.
class _Axes:
    def _passing(self, at):
        n = self.notation
        kind_of = {i: p for i in self.data if isinstance(p := at[i], Partial)}
        partial, kinds = set(kind_of), set(kind_of.values())
        if len(kinds) == 1:
            kind = kinds.pop()
            for block in n.linear:
                whole = set(block) == partial
                if whole and n.passes(kind.op):
                    return block, kind
        return (), Replicate()
