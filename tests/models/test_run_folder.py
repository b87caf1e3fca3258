"""Run folders are never shared or overwritten; files are whole or absent; metrics survive a crash."""

import math
import os
import threading

import pytest

from minipd.framework.errors import InputError
from minipd.framework.files import write_atomically
from minipd.models.run_folder import RunFolder, find_config, read_metrics


def test_the_next_free_number(tmp_path):
    runs = tmp_path / "deep" / "runs"
    assert [RunFolder.create(runs).path.name for _ in range(3)] == ["0001", "0002", "0003"]
    (runs / "0007").mkdir()
    (runs / "notes").mkdir()
    (runs / "0008").write_text("a file takes its number too")
    assert RunFolder.create(runs).path.name == "0009"
    (runs / "0002").rmdir()
    assert RunFolder.create(runs).path.name == "0010"  # numbers keep the order of time
    (runs / "9999").mkdir()
    assert RunFolder.create(runs).path.name == "10000"


def test_an_existing_run_is_left_alone(tmp_path):
    with RunFolder.create(tmp_path) as first:
        first.log(step=1)
        first.write("config.toml", "seed = 1")
    RunFolder.create(tmp_path).write("config.toml", "seed = 2")
    assert (first.path / "config.toml").read_text() == "seed = 1"
    assert read_metrics(first.path) == [{"step": 1}]


def test_runs_that_start_at_once(tmp_path):
    made = []
    start = threading.Barrier(8)

    def create():
        start.wait()
        made.append(RunFolder.create(tmp_path).path.name)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [f"{number:04}" for number in range(1, 9)]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"expected a folder to put runs in, got .*file \("):
        RunFolder.create(tmp_path / "file")


def test_metrics_can_be_read_while_the_run_goes_on(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.log(step=1, loss=6.5)
    folder.log(step=2, loss=math.inf, note="é")
    assert read_metrics(folder.path) == [{"step": 1, "loss": 6.5}, {"step": 2, "loss": math.inf, "note": "é"}]
    folder.close()
    folder.log(step=3)
    folder.close()
    assert [row["step"] for row in read_metrics(folder.path)] == [1, 2, 3]


@pytest.mark.parametrize("cut_off", ["", '{"step": 2, "lo', "x" * 10])
def test_a_line_that_a_crash_cut_off(tmp_path, cut_off):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n' + cut_off)
    assert read_metrics(tmp_path) == [{"step": 1}]
    with RunFolder(tmp_path) as folder:
        folder.log(step=2)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'


def test_only_a_cut_off_line(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"st')
    assert read_metrics(tmp_path) == []
    with RunFolder(tmp_path) as folder:
        folder.log(step=1)
    assert read_metrics(tmp_path) == [{"step": 1}]


@pytest.mark.parametrize("line", ["{", "[1]", "3"])
def test_a_line_that_is_no_object(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n' + line + '\n{"step": 3}\n')
    with pytest.raises(InputError, match="expected one JSON object a line, got line 2 of .*metrics.jsonl"):
        read_metrics(tmp_path)


def test_no_metrics(tmp_path):
    with pytest.raises(InputError, match=r"expected the metrics of a run, got .*metrics.jsonl \(No such file"):
        read_metrics(tmp_path)


def test_files_of_the_folder(tmp_path):
    folder = RunFolder.create(tmp_path)
    assert folder.write("sample.txt", "It is").read_text() == "It is"
    assert folder.write("picture.png", b"\x89PNG").read_bytes() == b"\x89PNG"
    assert sorted(os.listdir(folder.path)) == ["picture.png", "sample.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_atomically(file, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, "new")
    assert os.listdir(tmp_path) == ["file"] and file.read_text() == "old"


def test_find_config(tmp_path):
    checkpoint = tmp_path / "0001" / "checkpoint" / "step-5"
    checkpoint.mkdir(parents=True)
    config = tmp_path / "0001" / "config.toml"
    config.write_text("")
    for path in (tmp_path / "0001", checkpoint, config):
        assert find_config(path) == config
    with pytest.raises(InputError, match="which has none"):
        find_config(tmp_path)
