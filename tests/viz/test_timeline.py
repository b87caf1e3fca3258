"""Pictures of pipelines: jobs in their lanes, as long as they take; what is empty is bubble."""

from xml.etree import ElementTree

import pytest

from minipd import viz
from minipd.parallel.pipeline.check import bubble
from minipd.parallel.pipeline.schedule import Job, schedule
from minipd.viz.chart import round_step

SVG = "{http://www.w3.org/2000/svg}"


def bars(picture, kind):
    """(x, y, width, tip) of the boxes of a kind, without that of the legend."""
    found = [e for e in ElementTree.fromstring(picture.svg).iter(f"{SVG}rect") if e.get("class") == kind]
    return [(float(e.get("x")), float(e.get("y")), float(e.get("width")), e[0].text) for e in found if len(e)]


def texts(picture):
    return [e.text for e in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["FThenB", "1F1B"])
@pytest.mark.parametrize("n_micro", [1, 2, 3, 4, 5, 7])
def test_every_job_is_drawn_and_none_meets_another(name, n_micro):
    picture = viz.schedule(schedule(name, 4, n_micro))
    for kind in ("forward", "backward"):
        tips = [tip for *_, tip in bars(picture, kind)]
        assert all(sum(tip.startswith(f"{kind} {m},") for tip in tips) == 4 for m in range(n_micro))
    lanes: dict[float, list] = {}
    for kind in ("forward", "backward", "optimizer"):
        for x, y, w, _ in bars(picture, kind):
            lanes.setdefault(y, []).append((x, w))
    assert len(lanes) == 4
    for lane in lanes.values():
        lane.sort()
        assert all(x + w <= x2 + 0.2 for (x, w), (x2, _) in zip(lane, lane[1:], strict=False))


def test_a_forward_job_comes_before_the_next_stage_and_is_as_long_as_it_takes():
    picture = viz.schedule(schedule("1F1B", 2, 2), {"forward": 1, "backward": 2, "optimizer": 1})
    (x0, _, w0, _), = [b for b in bars(picture, "forward") if b[3].startswith("forward 0") and b[1] == 22]
    (x1, *_), = [b for b in bars(picture, "forward") if b[3].startswith("forward 0") and b[1] != 22]
    assert x1 == pytest.approx(x0 + w0, abs=0.2)
    assert bars(picture, "backward")[0][2] == pytest.approx(2 * w0, abs=0.2)


def test_the_bubble_is_written_down():
    jobs = schedule("1F1B", 4, 8)
    picture = viz.schedule(jobs, {"forward": 1, "backward": 1, "optimizer": 0})
    assert texts(picture).count(f"idle {bubble(jobs):.0%}") == 4


def test_a_schedule_that_waits_for_ever_is_refused():
    with pytest.raises(ValueError, match="deadlock"):
        viz.schedule([[Job("backward", 0), Job("forward", 0)], [Job("forward", 0), Job("backward", 0)]])


def records():
    return [{"rank": 2 * stage + r, "stage": stage, "type": kind, "micro": 0, "start": 7 + start, "end": 7 + end}
            for r in (0, 1)
            for stage, kind, start, end in [(0, "forward", 0.0, 0.01), (1, "forward", 0.01, 0.02),
                                            (1, "backward", 0.02, 0.04), (0, "backward", 0.05, 0.07)]]


def test_a_measured_step_has_a_lane_for_each_rank_in_milliseconds():
    picture = viz.timeline(records())
    words = texts(picture)
    assert [w for w in words if w.startswith("rank ")] == [f"rank {r}, stage {r // 2}" for r in range(4)]
    assert "time in ms" in words and "70" in words and picture.title == "measured step of 4 ranks"
    (x0, _, w0, tip), *_ = bars(picture, "forward")
    assert tip == "forward 0, 0 to 10 ms"
    assert words.count("idle 57%") == 4                 # 30 of 70 ms are work
    assert len(bars(picture, "idle")) == 4


def test_numbers_are_left_out_where_they_have_no_room():
    long = [*records(), {"rank": 0, "stage": 0, "type": "optimizer", "micro": 0, "start": 100.0, "end": 900.0}]
    assert "0" not in [w for w in texts(viz.timeline(long)) if w == "0"][1:]        # only on the axis


@pytest.mark.parametrize(("rows", "problem"), [
    ([], "expected records of at least one job"),
    ([{"rank": 0, "stage": 0, "type": "forward", "start": 0, "end": 1}], "record 0: expected .* got no micro"),
])
def test_records_that_say_nothing_are_refused(rows, problem):
    with pytest.raises(ValueError, match=problem):
        viz.timeline(rows)


def test_an_unknown_kind_of_job_and_no_time_at_all_are_drawn():
    row = {"rank": 0, "stage": 0, "micro": 0, "start": 0.0, "end": 0.0}
    assert "backward_weight 0" in viz.timeline([row | {"type": "backward_weight"}]).svg


def test_round_steps():
    assert [round_step(w, 10) for w in (1, 9, 11, 23, 70)] == [0.1, 1.0, 2.0, 5.0, 10.0]
