"""The folder of a sweep: whose it is, who works in it, what it keeps, and what failed."""

import json
import mmap
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hpcrowd import HpcrowdError, ReplayConfig, read_study, read_swf, replay, sweep
from hpcrowd.analysis import results as results_module
from hpcrowd.analysis.comparison.sweeps import ROW_METRICS
from hpcrowd.errors import ResultsError
from hpcrowd.metrics import METRICS
from hpcrowd.scenarios.commands.simulate.sweep import command
from hpcrowd.scenarios.sweeps.folder import SweepFolder, locked
from hpcrowd.scenarios.sweeps.runs import _identity
from hpcrowd.scenarios.sweeps.worker import JOB_COLUMNS, failed, read_shared, write_shared

from tests.scenarios.sweeps.sweep_cases import SCENARIO, landed, write_study

SHORT = SCENARIO + '[axes]\nspeed = ["1x", "0.7x"]\nseed = 2\n'


def run(path, out, *, resume=False):
    """Sweep in this process."""
    return sweep(read_study(path), out, resume=resume)


def test_rows_are_those_of_replays(tmp_path):
    """Each row of the frame holds the metrics of the same replay by itself; files say the same."""
    path, out = write_study(tmp_path, 'keep = "jobs"\n' + SHORT), tmp_path / "out"
    found = run(path, out)
    frame = pd.read_parquet(out / "frame.parquet")
    assert ["speed", "seed", "key", "state", *ROW_METRICS, "error"] == list(frame.columns)
    assert found.result.frame.equals(frame)
    trace = read_swf(tmp_path / "busy.swf")
    for row in frame.to_dict("records"):
        single = replay(trace, users="fluid", speed=row["speed"], seed=row["seed"])
        for metric in METRICS:
            assert metric.optional or single.metrics[metric.name] == row[metric.name]
        assert single.metrics["per_user"]["wait_mean_s"]["p90"] == row["wait_mean_s_users_p90"]
        jobs = pd.read_parquet(out / "jobs" / f"{row['key']}.parquet")
        assert list(JOB_COLUMNS) == list(jobs.columns)
        whole = single.jobs.to_frame()
        for name in JOB_COLUMNS:
            assert whole[name].tolist() == jobs[name].tolist()
        metadata = pq.read_metadata(out / "runs" / f"{row['key']}.parquet").metadata
        told = json.loads(metadata[b"hpcrowd"])["scenario"]
        assert (row["seed"], trace.sha256) == (told["seed"], told["trace"])
    assert not (out / "inputs").exists()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Return a folder with a study that was swept into ``out``."""
    folder = tmp_path_factory.mktemp("folder")
    run(write_study(folder, SHORT), folder / "out")
    return folder


@pytest.fixture
def done(swept, tmp_path):
    """Return a copy of the study and its folder."""
    shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
    return tmp_path / "study.toml", tmp_path / "out"


def test_finished_runs_are_counted_before_the_study_is_read(done):
    """The command refuses a folder with runs at once; those that failed are not finished."""
    path, out = done
    folder = SweepFolder(out)
    with folder.index.open("a") as index:
        folder.add(failed("f" * 20, "no memory"), index)
    path.write_text("not read")
    with pytest.raises(HpcrowdError, match="holds 4 finished runs already; add --resume"):
        command(path, out)


def test_folder_of_another_study_is_refused(tmp_path, done):
    """A folder of another study, of something else, or with runs is refused in plain words."""
    path, out = done
    with pytest.raises(HpcrowdError, match="holds 4 finished runs already; add --resume"):
        run(path, out)
    other = write_study(tmp_path, SHORT.replace('"fluid"', '"rigid"'), name="other.toml")
    with pytest.raises(HpcrowdError, match='users is "fluid" there and "rigid" here'):
        run(other, out, resume=True)
    log = tmp_path / "busy.swf"
    log.write_text(log.read_text() + "\n")
    with pytest.raises(HpcrowdError, match=r"trace busy\.swf has changed .* put the old file back"):
        run(path, out, resume=True)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "notes.txt").write_text("mine")
    with pytest.raises(HpcrowdError, match=r"holds notes\.txt and is not the folder of a sweep"):
        run(path, strange, resume=True)
    assert ["notes.txt"] == [one.name for one in strange.iterdir() if one.name != ".lock"]


def test_what_has_changed_is_said(tmp_path, done, monkeypatch):
    """Another version is named and the runs stay; files of only some values are looked at, too."""
    versions = {**results_module.versions(), "numpy": "9.9"}
    with monkeypatch.context() as patch:
        patch.setattr("hpcrowd.scenarios.sweeps.runs.versions", lambda: versions)
        found = run(*done, resume=True)
    assert (4, [True]) == (found.kept, ["and is 9.9 now" in note for note in found.notes])
    path = write_study(tmp_path, SCENARIO + '[axes]\ntrace = ["busy.swf", "other.swf"]\n')
    other = tmp_path / "other.swf"
    other.write_bytes((tmp_path / "busy.swf").read_bytes())
    run(path, tmp_path / "two")
    other.write_text(other.read_text() + "\n")
    with pytest.raises(HpcrowdError, match=r"trace other\.swf has changed"):
        run(path, tmp_path / "two", resume=True)


#: Bytes from one that is damaged to the next; with HPCROWD_ATTACK=13 each is damaged.
STEP = max(1, 13 // int(os.environ.get("HPCROWD_ATTACK", "1")))


@pytest.mark.parametrize("step", [1499, pytest.param(STEP, marks=pytest.mark.endurance)])
def test_damaged_files_are_found(done, step, monkeypatch):
    """Study, index and runs, cut or changed at any byte: what is not as it was is run again."""
    path, out = done
    monkeypatch.setattr("os.fsync", lambda _: None)
    identity, before = _identity(read_study(path)), SweepFolder(out).outcomes()
    files = [out / "study.json", out / "index.jsonl", next((out / "runs").iterdir())]
    whole = {one: one.read_bytes() for one in (*files, *(out / "runs").iterdir())}
    for damaged in files:
        text = whole[damaged]
        # A table has one checksum for all of it: every seventh byte will do.
        for at in range(0, len(text), 7 * step if damaged.suffix == ".parquet" else step):
            for broken in (text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :], text[:at]):
                damaged.write_bytes(broken)
                folder = SweepFolder(out)
                notes = folder.begin(identity, resume=True)
                after = folder.outcomes()
                assert {key: one.row for key, one in before.items() if key in after} == {
                    key: one.row for key, one in after.items()
                }
                lost = before.keys() - after.keys()
                assert lost == ({damaged.stem} if damaged.parent.name == "runs" else set())
                assert bool(lost) == any("so it is done again" in note for note in notes)
                for one, content in whole.items():
                    one.write_bytes(content)


def test_what_a_sweep_did_not_write_stays(tmp_path, done, call):
    """Notes stay; a changed table is named before anything runs, and --force leaves it, too."""
    path, out = done
    mine = [out / name for name in ("notes.txt", "runs/notes.txt", "inputs/x.shared", ".a.tmp")]
    for one in mine:
        one.parent.mkdir(exist_ok=True)
        one.write_text("mine")
    assert 4 == run(path, out, resume=True).kept
    (out / "summary.csv").write_text("mine")
    with pytest.raises(HpcrowdError, match=r"summary\.csv: is not as hpcrowd wrote it"):
        run(path, out, resume=True)
    assert ["mine"] * 5 == [one.read_text() for one in (*mine, out / "summary.csv")]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.jsonl").write_text("mine")
    for force in ([], ["--force"]):
        line = ("sweep", path, "--out", tmp_path / "other", "--executor", "inline", *force)
        assert 2 == call(*line)[0]


def test_results_are_known_wherever_a_sweep_is_killed(done, monkeypatch):
    """Killed between two of its results, the next sweep replaces the old and the new ones."""
    path, out = done
    whole, left = Path.replace, [3]

    def killed(self, target):
        left[0] -= "results" in self.parent.name
        if not left[0]:
            raise OSError(5, "killed")
        return whole(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(HpcrowdError, match="killed"):
            run(write_study(path.parent, SHORT.replace("seed = 2", "seed = 1")), out, resume=True)
    assert 4 == run(write_study(path.parent, SHORT), out, resume=True).kept


def hold(path, ready, end):
    """Hold the folder until notified."""
    with locked(path):
        ready.set()
        end.wait(30)


@pytest.mark.slow
def test_second_sweep_is_refused_and_a_dead_one_is_not(tmp_path):
    """While a sweep works in a folder another is refused; when it was killed, it is not."""
    path, out = write_study(tmp_path, SHORT), tmp_path / "out"
    context = multiprocessing.get_context("spawn")
    ready, end = context.Event(), context.Event()
    process = context.Process(target=hold, args=(out, ready, end))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(HpcrowdError, match=rf"in use by another sweep .process {process.pid}"):
            run(path, out)
    finally:
        process.kill()
        process.join()
    assert 4 == run(path, out).over


def test_failed_runs_are_recorded_and_tried_again(tmp_path, monkeypatch):
    """What goes wrong in a run is its row; the others continue, and resuming tries it again."""
    path, out = write_study(tmp_path, SHORT), tmp_path / "out"
    whole = ReplayConfig.run

    def fails(self, prepared, progress=None):
        if (self.speed, self.seed) == ("0.7x", 1):
            raise MemoryError("too\nlarge")
        return whole(self, prepared, progress)

    monkeypatch.setattr(ReplayConfig, "run", fails)
    found = run(path, out)
    assert (4, 1) == (found.over, found.failed)
    frame = pd.read_csv(out / "frame.csv")
    assert ["done", "done", "done", "failed"] == frame["state"].tolist()
    assert "MemoryError: too large" == frame["error"].iloc[3]
    assert np.isnan(frame["wait_mean_s"].iloc[3])
    assert 3 == len(landed(out))
    assert [1] == [line.estimate.count for line in found.result.lines
                   if line.against is not None and line.metric == "utilization"]  # fmt: skip
    monkeypatch.setattr(ReplayConfig, "run", whole)
    again = run(path, out, resume=True)
    assert (3, 0) == (again.kept, again.failed)
    assert ["done"] * 4 == again.result.frame["state"].tolist()


def test_runs_that_cannot_be_are_recorded(tmp_path, call):
    """Settings that do not go together are rows with errors; the exit code and the first say so."""
    axes = '[axes]\nusers = ["rigid", "adjusted"]\nsessions = ["arrival:60m", "preceding"]\n'
    path, out = write_study(tmp_path, SCENARIO + axes), tmp_path / "out"
    code, text, err = call("sweep", path, "--out", out, "--executor", "inline")
    assert (1, True) == (code, "2 of 4 runs done" in text)
    assert "2 runs of 4 failed; the first: " in err
    errors = pd.read_parquet(out / "frame.parquet")["error"].tolist()
    assert ["", ""] == errors[::2]
    assert all("preceding" in error for error in errors[1::2])
    assert "2 of 4 runs done, 2 failed" in call("sweep", path, "--out", out, "--status")[1]


def test_shared_inputs_are_private_copies(tmp_path):
    """What is read from a shared file can be written to, and the next reader sees none of it."""
    arrays = {"a": np.arange(10_000), "b": np.arange(3, dtype=np.int8)}
    value = {**arrays, "again": arrays["a"], "text": "x"}
    path = tmp_path / "x.shared"
    write_shared(value, path)
    first, second = read_shared(path), read_shared(path)
    assert first["again"] is first["a"]
    first["a"][:] = -1
    for found in (second, read_shared(path)):
        assert (arrays["a"] == found["a"]).all()
        assert (arrays["b"], "x") == (pytest.approx(found["b"]), found["text"])
    assert first["a"].flags.writeable
    assert isinstance(_owner(first["a"]), mmap.mmap)  # of the file, not a copy of it
    assert _owner(first["a"]) is _owner(first["b"])
    assert 0 == first["a"].ctypes.data % 64
    with pytest.raises(ResultsError, match="cannot be read"):
        read_shared(tmp_path / "none.shared")


def _owner(array):
    """Return what owns the memory of an array."""
    while (below := getattr(array, "base", None)) is not None:
        array = below
    return array.obj if isinstance(array, memoryview) else array


def test_drawn_requests_share_the_trace_alone(tmp_path):
    """Where requested times are drawn, each seed has its own and all share what was recorded."""
    axes = '[axes]\nrequested = ["tsafrir:fitted+all", "given"]\nseed = 3\n'
    study = read_study(write_study(tmp_path, SCENARIO + axes))
    shared = {json.dumps(study.scenario_at(point).sharing()) for point in study.points()}
    assert 2 == len(shared)
    sweep(study, tmp_path / "out")
    frame = pd.read_parquet(tmp_path / "out" / "frame.parquet")
    trace = read_swf(tmp_path / "busy.swf")
    for row in frame.to_dict("records"):
        single = replay(trace, users="fluid", requested=row["requested"], seed=row["seed"])
        assert single.metrics["wait_mean_s"] == row["wait_mean_s"]
