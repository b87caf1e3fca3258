# The new loops are not written down: the next block is sent to a loop that is gone.
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
                before = path
