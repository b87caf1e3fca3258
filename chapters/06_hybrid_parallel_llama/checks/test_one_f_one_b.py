"""The jobs of one stage under 1F1B."""

from minipd.parallel.pipeline.check import check as check_schedule
from minipd.parallel.pipeline.check import in_flight, simulate
from minipd.parallel.pipeline.schedule import one_f_one_b, schedule
from tools.course.checking import check


def jobs(stage, stages, n_micro):
    """`F0 F1 B0 ...`"""
    return " ".join(map(str, one_f_one_b(stage, stages, n_micro)))


def expect(text, stage, stages, n_micro):
    check(f"{text} optimizer", lambda: jobs(stage, stages, n_micro),
          f"stage {stage} of {stages}, {n_micro} micro-batches")


def test_a_single_stage():
    expect("F0 B0 F1 B1", 0, 1, 2)


def test_the_last_stage_has_no_warm_up():
    expect("F0 B0 F1 B1 F2 B2", 1, 2, 3)


def test_the_first_of_two_stages():
    expect("F0 F1 B0 F2 B1 B2", 0, 2, 3)


def test_four_stages():
    expect("F0 F1 F2 F3 B0 F4 B1 B2 B3 B4", 0, 4, 5)
    expect("F0 F1 F2 B0 F3 B1 F4 B2 B3 B4", 1, 4, 5)
    expect("F0 F1 B0 F2 B1 F3 B2 F4 B3 B4", 2, 4, 5)
    expect("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4", 3, 4, 5)


def test_fewer_micro_batches_than_stages():
    """Where some implementations hang."""
    expect("F0 B0", 0, 4, 1)
    expect("F0 F1 B0 B1", 0, 4, 2)
    expect("F0 F1 B0 B1", 1, 4, 2)
    expect("F0 B0 F1 B1", 3, 4, 2)


def test_as_many_as_stages():
    expect("F0 F1 F2 F3 B0 B1 B2 B3", 0, 4, 4)


def test_what_paddle_does():
    """pp 2, 4 micro-batches, out of Paddle's own job lists."""
    expect("F0 F1 B0 F2 B1 F3 B2 B3", 0, 2, 4)
    expect("F0 B0 F1 B1 F2 B2 F3 B3", 1, 2, 4)


def every():
    return [(stages, n) for stages in (1, 2, 3, 4, 6) for n in (1, 2, 3, 4, 5, 7, 12)]


def test_every_schedule_can_run():
    for stages, n in every():
        def right(stages=stages, n=n):
            check_schedule(schedule("1F1B", stages, n), n)
            return "right"
        check("right", right, f"{stages} stages, {n} micro-batches: what minipd/parallel/pipeline/check.py says")


def test_few_activations_are_kept():
    for stages, n in every():
        most = [in_flight(one_f_one_b(s, stages, n)) for s in range(stages)]
        check([min(stages - s, n) for s in range(stages)], most,
              f"{stages} stages, {n} micro-batches: of how many micro-batches each stage keeps the activations at once")


def test_no_time_is_lost():
    """A forward and a backward job take 1 each: m of both on every stage, and p - 1 stages to fill and to empty."""
    for stages, n in every():
        end = max(t.end for t in simulate(schedule("1F1B", stages, n)))
        check(2 * (n + stages - 1), end,
              f"{stages} stages, {n} micro-batches, every job takes 1: when the last one ends")
