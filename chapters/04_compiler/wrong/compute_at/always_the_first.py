# All blocks are compared with the first of the nest, not with the one before.
from minipd.cinn.schedule.errors import ScheduleError


class ComputeAt:
    def apply(self, s, group, config):
        for order in group.order:
            first = group.paths[order[0]] if order else []
            for name in order[1:]:
                path = group.paths[name]
                depth = 0
                while depth < min(len(first), len(path)) and first[depth][0] == path[depth][0]:
                    depth += 1
                if depth:
                    try:
                        s.simple_compute_at(name, first[depth - 1][1])
                        group.paths[name] = first[:depth] + path[depth:]
                    except ScheduleError:
                        pass
