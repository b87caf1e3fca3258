# A `return` keeps its value and goes on with the next iteration, which may give it another.
class LoopExits:
    def leave(self, s, loop):
        out = []
        if isinstance(s, ast.Return):
            loop.returns = True
            value = s.value or ast.copy_location(ast.Constant(None), s)
            if not (isinstance(value, ast.Name) and value.id == self.value):
                out = [assign(self.value_name(), value, s), assign(self.flag, True, s)]
        elif isinstance(s, ast.Break):
            loop.stops = True
            out.append(assign(loop.stop, True, s))
        return [*out, ast.copy_location(ast.Return(None), s)]
