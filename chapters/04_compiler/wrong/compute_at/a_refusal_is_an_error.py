# A block that may not move ends everything.


class ComputeAt:
    def apply(self, s, group, config):
        for order in group.order:
            before = []
            for name in order:
                path = group.paths[name]
                depth = 0
                while depth < min(len(before), len(path)) and before[depth][0] == path[depth][0]:
                    depth += 1
                if depth:
                    s.simple_compute_at(name, before[depth - 1][1])
                    path = before[:depth] + path[depth:]
                group.paths[name] = before = path
