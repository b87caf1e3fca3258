# Sees names that are assigned; imports, functions, classes, exceptions and patterns bind names too.
def bound(nodes):
    hidden = {id(n) for node in own_nodes(nodes) if isinstance(node, ast.comprehension) for n in ast.walk(node.target)}
    return list(dict.fromkeys(n.id for n in own_nodes(nodes) if isinstance(n, ast.Name)
                              and not isinstance(n.ctx, ast.Load) and id(n) not in hidden))
