# The flags are set, and what follows in the body is run all the same.
class LoopExits:
    def leave(self, s, loop):
        out = [ast.copy_location(ast.Pass(), s)]
        if isinstance(s, ast.Return):
            loop.returns = True
            value = s.value or ast.copy_location(ast.Constant(None), s)
            if not (isinstance(value, ast.Name) and value.id == self.value):
                out = [assign(self.value_name(), value, s), assign(self.flag, True, s)]
        if not isinstance(s, ast.Continue):
            loop.stops = True
            out.append(assign(loop.stop, True, s))
        return out
