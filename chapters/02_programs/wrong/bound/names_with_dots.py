# `import os.path` binds os; here it binds a name with a dot in it.
def bound(nodes):
    found, hidden = {}, set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.comprehension):
            hidden |= {id(n) for n in ast.walk(node.target)}
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in hidden:
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not is_part(node):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= dict.fromkeys(a.asname or a.name for a in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] = None
    return list(found)
