# Only the outermost loop is shared: two blocks of one pass get two loops.
from minipd.cinn.schedule.errors import ScheduleError


class ComputeAt:
    def apply(self, s, group, config):
        for order in group.order:
            before = []
            for name in order:
                path = group.paths[name]
                if before and path and before[0][0] == path[0][0]:
                    try:
                        s.simple_compute_at(name, before[0][1])
                        path = before[:1] + path[1:]
                    except ScheduleError:
                        pass
                group.paths[name] = before = path
