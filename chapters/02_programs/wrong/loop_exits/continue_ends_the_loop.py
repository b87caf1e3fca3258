# `continue` sets the flag, as `break` does: no iteration comes after it.
class LoopExits:
    def leave(self, s, loop):
        out = []
        if isinstance(s, ast.Return):
            loop.returns = True
            value = s.value or ast.copy_location(ast.Constant(None), s)
            if not (isinstance(value, ast.Name) and value.id == self.value):
                out = [assign(self.value_name(), value, s), assign(self.flag, True, s)]
        loop.stops = True
        return [*out, assign(loop.stop, True, s), ast.copy_location(ast.Return(None), s)]
