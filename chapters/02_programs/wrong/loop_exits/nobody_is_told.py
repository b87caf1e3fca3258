# The flag is set, but the loop is not told that it has one.
class LoopExits:
    def leave(self, s, loop):
        out = []
        if isinstance(s, ast.Return):
            loop.returns = True
            value = s.value or ast.copy_location(ast.Constant(None), s)
            if not (isinstance(value, ast.Name) and value.id == self.value):
                out = [assign(self.value_name(), value, s), assign(self.flag, True, s)]
        if not isinstance(s, ast.Continue):
            out.append(assign(loop.stop, True, s))
        return [*out, ast.copy_location(ast.Return(None), s)]
