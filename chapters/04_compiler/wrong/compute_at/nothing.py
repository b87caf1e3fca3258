# Every block keeps its nest: the numbers are right, and arrays lie in between.


class ComputeAt:
    def apply(self, s, group, config):
        pass
