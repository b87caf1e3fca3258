# A block that may not move is written down as if it had.
from minipd.cinn.schedule.errors import ScheduleError


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
                    try:
                        s.simple_compute_at(name, before[depth - 1][1])
                    except ScheduleError:
                        pass
                    path = before[:depth] + path[depth:]
                group.paths[name] = before = path
