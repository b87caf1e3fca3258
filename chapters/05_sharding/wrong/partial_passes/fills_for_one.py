# Fills also around a single Partial: its one reduction comes later then, on what may have grown, and nothing is saved.
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
                filled = (n.fill and bool(partial) and partial < set(block)
                          and all(isinstance(at[i], Replicate) for i in rest))
                if (whole or filled) and n.passes(kind.op):
                    return block, kind
        return (), Replicate()
