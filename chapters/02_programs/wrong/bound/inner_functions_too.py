# Goes into inner functions and classes, whose variables are their own.
def bound(nodes):
    found, hidden = {}, set()
    for node in [n for top in nodes for n in ast.walk(top)]:
        if isinstance(node, ast.comprehension):
            hidden |= {id(n) for n in ast.walk(node.target)}
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in hidden:
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not is_part(node):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= dict.fromkeys(a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] = None
    return list(found)
