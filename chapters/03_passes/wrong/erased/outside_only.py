# Forgets what is inside of the regions, which goes as well.


class Touched:
    def erased(self, op):
        for v in op.operands_source():
            source = v.get_defining_op()
            if source is not None:
                self.ops[source] = None
                for r in source.results():
                    if r.use_count() <= NEIGHBOURS:
                        self._add(r.all_used_ops())
