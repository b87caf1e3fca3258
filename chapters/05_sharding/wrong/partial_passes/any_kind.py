# Does not look at the kind: a maximum passes a product with -1.
class _Axes:
    def _passing(self, at):
        n = self.notation
        kind_of = {i: p for i in self.data if isinstance(p := at[i], Partial)}
        partial, kinds = set(kind_of), set(kind_of.values())
        if len(kinds) == 1:
            kind = kinds.pop()
            for block in n.linear:
                whole = set(block) == partial
                rest = set(block) - partial
                filled = (n.fill and len(partial) > 1 and partial < set(block)
                          and all(isinstance(at[i], Replicate) for i in rest))
                if (whole or filled):
                    return block, kind
        return (), Replicate()
