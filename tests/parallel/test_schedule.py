"""Schedules as data: against Paddle's, and checked before anything runs (hard case E11)."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.parallel.pipeline.check import bubble, check, in_flight, simulate
from minipd.parallel.pipeline.schedule import SCHEDULES, Job, schedule

GOLDEN = Path(__file__).parents[1] / "golden" / "pipeline_schedule.jsonl.xz"
ROWS = [json.loads(line) for line in lzma.open(GOLDEN, "rt")]


def with_messages(jobs):
    """A job list as Paddle's 1F1B pass writes it, with a job for each message: what a forward job needs is received
    before it, what a backward job makes is sent after it, but after the receive of the forward job that follows."""
    out = []
    for i, job in enumerate(jobs):
        if job.type == "forward":
            after_backward = i > 0 and jobs[i - 1].type == "backward"
            out.insert(len(out) - after_backward, ["recv_forward", job.micro])
        out.append([job.type, job.micro])
        if job.type == "backward":
            out.append(["send_backward", job.micro])
    return out


@pytest.mark.parametrize("row", ROWS, ids=lambda r: "{schedule}-p{pp_degree}-m{num_micro_batches}-s{pp_stage}".format(
    **r))
def test_the_jobs_of_paddle(row):
    jobs = schedule(row["schedule"], row["pp_degree"], row["num_micro_batches"])[row["pp_stage"]]
    ours = with_messages(jobs) if row["schedule"] == "1F1B" else [[job.type, job.micro] for job in jobs]
    assert ours == row["jobs"]


def test_there_are_rows_of_both_kinds():
    assert {row["schedule"] for row in ROWS} == set(SCHEDULES)


@pytest.mark.parametrize("name", list(SCHEDULES))
@pytest.mark.parametrize("n_micro", [1, 2, 3, 4, 5, 7])
def test_more_and_fewer_micro_batches_than_stages(name, n_micro):
    """pytorch/torchtitan #775, Megatron-LM #675: p=4 with m in {1, 2, 3, 4, 5, 7}."""
    plan = schedule(name, 4, n_micro)
    kept = [SCHEDULES[name].kept(stage, 4, n_micro) for stage in range(4)]
    check(plan, n_micro, kept)
    assert [in_flight(jobs) for jobs in plan] == kept
    assert kept == ([n_micro] * 4 if name == "FThenB" else [min(4 - stage, n_micro) for stage in range(4)])


@given(st.sampled_from(list(SCHEDULES)), st.integers(1, 8), st.integers(1, 12))
def test_both_kinds_wait_as_little_as_can_be(name, stages, n_micro):
    """The first micro-batch needs p - 1 jobs to reach the last stage, and its gradient as many to come back."""
    assert bubble(schedule(name, stages, n_micro)) == pytest.approx((stages - 1) / (n_micro + stages - 1))


def test_one_f_one_b_by_hand():
    """Backward jobs twice as long.   stage 0  F0 F1 .. .. B0 B0 B1 B1      stage 1  .. F0 B0 B0 F1 B1 B1"""
    timed = simulate(schedule("1F1B", 2, 2), {"forward": 1, "backward": 2, "optimizer": 0})
    assert [(t.stage, str(t.job), t.start, t.end) for t in timed if t.job.type != "optimizer"] == [
        (0, "F0", 0, 1), (0, "F1", 1, 2), (0, "B0", 4, 6), (0, "B1", 7, 9),
        (1, "F0", 1, 2), (1, "B0", 2, 4), (1, "F1", 4, 5), (1, "B1", 5, 7)]


def jobs(text):
    kinds = {"F": "forward", "B": "backward", "O": "optimizer"}
    return [Job(kinds[word[0]], int(word[1:] or 0)) for word in text.split()]


@pytest.mark.parametrize(("stages", "text"), [
    (["F0 B0", "F0 B0 O"], "stage 0: expected the optimizer's job once, last, when all gradients are there"),
    (["F0 O B0", "F0 B0 O"], "stage 0: expected the optimizer's job once, last"),
    (["F0 B0 O", "F0 F0 B0 O"], "stage 1: expected F0 once, got it 2 times"),
    (["F0 B0 O", "F0 O"], "stage 1: expected B0 once, got it 0 times"),
    (["F0 B0 O", "B0 F0 O"], "stage 1: expected F0 before B0, which needs what F0 keeps; got B0 as job 0"),
    (["F0 F1 B0 B1 O", "F0 B0 O"], "stage 0: expected jobs of the micro-batches 0 to 0, got Job(type='forward'"),
])
def test_a_wrong_schedule_is_refused(stages, text):
    with pytest.raises(ValueError) as caught:
        check([jobs(s) for s in stages], n_micro=1)
    assert text in str(caught.value)


def test_a_deadlock_is_found_before_it_happens():
    with pytest.raises(ValueError) as caught:
        check([jobs("F0 B0 F1 B1 O"), jobs("F0 F1 B0 B1 O")], n_micro=2)
    assert str(caught.value) == ("schedule: expected an order in which every stage goes on, got a deadlock: stage 0 "
                                 "waits in B0 for B0 of stage 1; stage 1 waits in F1 for F1 of stage 0")


def test_too_many_activations_are_refused():
    with pytest.raises(ValueError, match=r"stage 0: .* of at most 2 micro-batch\(es\) at once, got 3"):
        check(schedule("FThenB", 2, 3), 3, kept=[2, 1])


def test_chunks_are_parts_of_the_model():
    """Two chunks on each of two stages: parts 0 and 2 of the model on stage 0, 1 and 3 on stage 1."""
    def both(kind, order):
        return [Job(kind, 0, chunk) for chunk in order]
    good = [[*both("forward", [0, 1]), *both("backward", [1, 0]), Job("optimizer", 0)] for _ in range(2)]
    check(good, n_micro=1)
    assert max(t.end for t in simulate(good)) == 8
    bad = [[*both("forward", [1, 0]), *both("backward", [1, 0]), Job("optimizer", 0)], good[1]]
    with pytest.raises(ValueError, match="stage 0 waits in F0 of chunk 1 for F0 of stage 1"):
        check(bad, n_micro=1)


@pytest.mark.parametrize(("arguments", "text"), [
    (("2F2B", 2, 2), "schedule: expected one of FThenB, 1F1B, got '2F2B'"),
    (("1F1B", 0, 2), "schedule 1F1B: expected at least one stage and one micro-batch, got 0 stage(s) and 2"),
    (("FThenB", 2, 0), "got 2 stage(s) and 0 micro-batch(es)"),
])
def test_bad_arguments(arguments, text):
    with pytest.raises(ValueError) as caught:
        schedule(*arguments)
    assert text in str(caught.value)
