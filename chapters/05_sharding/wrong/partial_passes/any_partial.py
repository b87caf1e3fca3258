# Everything that is Partial passes, whatever the operator does.
class _Axes:
    def _passing(self, at):
        n = self.notation
        kind_of = {i: p for i in self.data if isinstance(p := at[i], Partial)}
        partial, kinds = set(kind_of), set(kind_of.values())
        if len(kinds) == 1:
            kind = kinds.pop()
            return tuple(partial), kind
        return (), Replicate()
