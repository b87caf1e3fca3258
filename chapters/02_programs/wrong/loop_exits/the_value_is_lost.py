# What was returned is None.
class LoopExits:
    def leave(self, s, loop):
        out = []
        if isinstance(s, ast.Return):
            loop.returns = True
            if not (isinstance(s.value, ast.Name) and s.value.id == self.value):
                out = [assign(self.value_name(), None, s), assign(self.flag, True, s)]
        if not isinstance(s, ast.Continue):
            loop.stops = True
            out.append(assign(loop.stop, True, s))
        return [*out, ast.copy_location(ast.Return(None), s)]
