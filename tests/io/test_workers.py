"""Batches loaded by worker processes: the same ones, and no failure that hangs or hides."""

import gc
import os
import signal
import subprocess
import sys
import time
import traceback

import numpy as np
import pytest

import minipd as paddle
from minipd import io
from minipd.io.workers import WorkerError


class Samples(io.Dataset):
    """Of several kinds, with the process that made them; and what happens at sample `at`."""

    def __init__(self, n=7, at=None, what=None):
        self.n, self.at, self.what = n, at, what

    def __getitem__(self, i):
        if i == self.at:
            self.what()
        return {"array": np.full((2, 3), i, "float32"), "tensor": paddle.full([2], i, "bfloat16"), "number": i,
                "text": str(i), "process": os.getpid()}

    def __len__(self):
        return self.n


def die():
    os._exit(3)


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise KeyError("no such picture")


def sleep():
    time.sleep(60)


def seen(loader):
    return [{k: v.tolist() if hasattr(v, "tolist") else v for k, v in b.items() if k != "process"} for b in loader]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] != "Z"


def test_workers_load_what_one_process_loads():
    """In the same order, pass after pass, shuffled or not, after numba's threads have started; what they send may be
    written, and they stay for the next pass if they are to."""
    paddle.seed(7)
    paddle.rand([200_000])                              # by numba, in threads
    for options in ({"batch_size": 2}, {"batch_size": 3, "shuffle": True, "drop_last": True}):
        paddle.seed(1)
        here = io.DataLoader(Samples(), **options)
        want = [seen(here), seen(here)]
        paddle.seed(1)
        loader = io.DataLoader(Samples(), **options, num_workers=2, persistent_workers=True)
        assert [seen(loader), seen(loader)] == want
    batch = next(iter(loader))
    assert batch["tensor"].dtype == "bfloat16" and set(batch["process"].tolist()) & {os.getpid()} == set()
    batch["array"][0] = 5.0
    assert batch["array"].numpy().flags.writeable
    pids = {p for b in loader for p in b["process"].tolist()}
    assert len(pids) == 2 and pids == {p for b in loader() for p in b["process"].tolist()}
    del loader, batch
    gc.collect()
    assert not any(map(alive, pids)), "workers end with their loader"


def test_single_samples_and_samplers_of_ones_own():
    single = list(io.DataLoader(Samples(3), batch_size=None, num_workers=1))
    assert [s["number"].item() for s in single] == [0, 1, 2] and single[0]["array"].shape == [2, 3]
    by = io.DataLoader(Samples(), batch_sampler=[[5, 0], [1]], num_workers=1,
                       collate_fn=lambda batch: [s["number"] for s in batch])
    assert list(by) == [[5, 0], [1]]


SCRIPT = """
import numpy as np
import paddle
from paddle.io import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        assert info.dataset is self and info.num_workers == 2
        return (np.array([i, info.id, np.random.randint(1 << 30)]) for i in range(info.id, self.n, info.num_workers))

def init(worker_id):
    info = get_worker_info()
    info.dataset.n += 1
    assert info.id == worker_id

# no `if __name__ == "__main__"`: workers do not run this script again
print("started")
passes = [[batch.numpy() for batch in DataLoader(Stream(6), batch_size=2, num_workers=2, worker_init_fn=init)]
          for _ in range(2)]
print([batch[:, 0].tolist() for batch in passes[0]])
print([batch[:, 1].tolist() for batch in passes[0]])
draws = np.concatenate(passes[0])[:, 2].tolist()
print(len(set(draws)) == len(draws), draws == np.concatenate(passes[1])[:, 2].tolist())
print(get_worker_info())
"""


def test_a_script_as_one_writes_it_for_paddle(tmp_path):
    """Everything in `__main__`, without a guard: a stream that each worker takes a part of, with draws of its own."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "minipd", "as-paddle", "script.py"], cwd=tmp_path, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "started", "[[0, 2], [1, 3], [4, 6], [5]]", "[[0, 0], [1, 1], [0, 0], [1]]", "True True", "None"]


def test_errors_come_with_their_traceback():
    """From a sample, from the start, from a batch that cannot be sent; then the loader can be used again."""
    dataset = Samples(at=5, what=fail)
    loader = io.DataLoader(dataset, batch_size=2, num_workers=2, persistent_workers=True)
    got = []
    with pytest.raises(WorkerError, match=r"worker 0 \(process \d+\) failed with batch 2") as caught:
        for batch in loader:
            got.append(batch["number"].tolist())
    assert got == [[0, 1], [2, 3]]
    assert "in fail" in str(caught.value) and 'KeyError: \'no such picture\'' in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError) and isinstance(caught.value, RuntimeError)
    dataset.at = None
    assert len(list(loader)) == 4
    with pytest.raises(WorkerError, match="worker 0 .* failed when it started(.|\n)*ZeroDivisionError"):
        list(io.DataLoader(Samples(), num_workers=1, worker_init_fn=lambda worker: 1 / 0))
    with pytest.raises(WorkerError, match="failed with batch 0(.|\n)*pickle"):
        list(io.DataLoader(Samples(), num_workers=1, collate_fn=lambda batch: sys._getframe()))
    dataset.lock = (x for x in ())
    with pytest.raises(TypeError, match="DataLoader: expected a dataset, .* that can be sent to worker processes"):
        list(io.DataLoader(dataset, num_workers=1))


@pytest.mark.parametrize("what,said", [(die, "exited with status 3"),
                                       (be_killed, "was killed by signal 9; that is what the system does when memory")])
def test_the_death_of_a_worker_is_told(what, said):
    with pytest.raises(WorkerError, match=rf"DataLoader: worker 0 \(process \d+\) {said}"):
        list(io.DataLoader(Samples(at=2, what=what), batch_size=2, num_workers=1))


def test_a_worker_that_takes_too_long():
    loader = io.DataLoader(Samples(at=2, what=sleep), batch_size=2, num_workers=1, timeout=0.5)
    started, got = time.monotonic(), []
    with pytest.raises(WorkerError, match=r"expected a batch from worker 0 \(process \d+\) within 0.5 s, got none"):
        for batch in loader:
            got.append(batch["process"].tolist())
    assert len(got) == 1 and time.monotonic() - started < 30 and not alive(got[0][0])


def test_passes_that_nobody_takes_to_their_end():
    """Without persistence the workers are gone; with it, the next pass begins at the beginning."""
    iterator = iter(io.DataLoader(Samples(50), num_workers=2))
    pids = next(iterator)["process"].tolist() + next(iterator)["process"].tolist()
    assert all(map(alive, pids))
    iterator.close()
    assert not any(map(alive, pids))
    loader = io.DataLoader(Samples(20), num_workers=2, persistent_workers=True)
    for _ in range(2):
        for batch, want in zip(loader, range(3), strict=False):
            assert batch["number"].item() == want
    assert [b["number"].item() for b in loader] == list(range(20))


def test_what_workers_import_later_is_not_imported_now():
    code = "import sys, minipd; assert 'cloudpickle' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0, traceback.format_exc()
