# A `return` ends the loop, and what follows the loop is run.
class LoopExits:
    def leave(self, s, loop):
        out = []
        if not isinstance(s, ast.Continue):
            loop.stops = True
            out.append(assign(loop.stop, True, s))
        return [*out, ast.copy_location(ast.Return(None), s)]
