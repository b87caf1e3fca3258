# The first block of a nest is sent into the nest before it.
from minipd.cinn.schedule.errors import ScheduleError


class ComputeAt:
    def apply(self, s, group, config):
        before = []
        for order in group.order:
            for name in order:
                path = group.paths[name]
                depth = 0
                while depth < min(len(before), len(path)) and before[depth][0] == path[depth][0]:
                    depth += 1
                if depth:
                    try:
                        s.simple_compute_at(name, before[depth - 1][1])
                        path = before[:depth] + path[depth:]
                    except ScheduleError:
                        pass
                group.paths[name] = before = path
