"""Results read back are the run that was written; a folder without results is reported."""

import json
from datetime import timedelta, timezone

import hpcrowd as hc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpcrowd.analysis.results import provenance
from hpcrowd.environment.jobs import State
from hpcrowd.errors import ResultsError
from hpcrowd.scenarios.demo import run_demo
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import HEADER


@pytest.fixture
def trace(make_trace):
    """Six jobs of two users; one has no processors, one is too large."""
    names = ("submit", "requested_processors", "user")
    rows = ((0, 3, 1), (600, 3, 1), (700, 9, 2), (90_000, 4, 2), (90_100, 2, 1), (90_200, 0, 1))
    jobs = ({"wait": 60, "run": 7200, **dict(zip(names, row, strict=True))} for row in rows)
    return make_trace(*jobs, header=HEADER)


@pytest.fixture
def folder(trace, tmp_path):
    """A folder of results of that trace."""
    hc.write_results(replay(trace, users="adjusted"), tmp_path / "run", plots=False)
    return tmp_path / "run"


def rewrite(name, **changes):
    """Return a damage to a JSON file of a folder: other values, also inside, or missing ones."""

    def damage(folder):
        content = json.loads((folder / name).read_text())
        for key, new in changes.items():
            content[key] = content.get(key, {}) | new if isinstance(new, dict) else new
        kept = {key: value for key, value in content.items() if value is not ...}
        (folder / name).write_text(json.dumps(kept))

    return damage


def column(name, values):
    """Return a damage that replaces a column of the table of jobs, or leaves it out."""

    def damage(folder):
        table = pq.read_table(folder / "jobs.parquet").drop_columns([name])
        if values is not None:
            table = table.append_column(name, pa.array(values))
        pq.write_table(table, folder / "jobs.parquet")

    return damage


def text(name, content):
    """Return a damage that overwrites a file, or removes it."""
    return lambda folder: (
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
    )


@pytest.mark.parametrize("header", [HEADER, "; MaxProcs: 4", "; UnixStartTime: 1\n; MaxProcs: 4"])
def test_results_read_back_are_the_run(trace, tmp_path, header):
    """Jobs, metrics, summary, clock, label and provenance are those that were written."""
    trace.header.lines = [line.encode() for line in header.splitlines()]
    run = replay(trace, users="adjusted", processors="8", scheduler="fcfs")
    hc.write_results(run, tmp_path / "run", plots=False)
    read = hc.read_results(tmp_path / "run")
    assert run.jobs.matrix.tolist() == read.jobs.matrix.tolist()
    for name in ("metrics", "clock", "label", "processors"):
        assert getattr(run, name) == getattr(read, name)
    assert run.summary() == read.summary()
    assert provenance(run) == provenance(read)


def test_other_clocks_and_generated_users_read_back(folder, tmp_path):
    """A run without a trace comes back too, and a zone that is only a distance is read."""
    run = run_demo(days=2)[3]
    hc.write_results(run, tmp_path / "demo", plots=False)
    read = hc.read_results(tmp_path / "demo")
    assert (run.summary(), None, run.clock) == (read.summary(), read.reading.source, read.clock)
    rewrite("summary.json", clock={"zone": "UTC+01:30"})(folder)
    zone = timezone(timedelta(hours=1, minutes=30))
    assert hc.Clock(953852400, zone, known=True) == hc.read_results(folder).clock


def test_additions_of_later_versions_are_passed_over(folder):
    """More keys, more columns, more files and another order of states do not disturb."""
    expected = hc.read_results(folder).metrics
    rewrite("summary.json", reactions={"renounced": 1})(folder)
    rewrite("provenance.json", weather="rain")(folder)
    (folder / "moods.parquet").write_bytes(b"")
    table = pq.read_table(folder / "jobs.parquet")
    words = ["rejected", "invented", "completed"]
    states = [words.index(word) for word in table.column("state").to_pylist()]
    other = pa.DictionaryArray.from_arrays(pa.array(states, pa.int8()), pa.array(words))
    table = table.drop_columns(["state", "batch"]).append_column("state", other)
    table = table.append_column("mood", pa.array(["good"] * len(table)))
    pq.write_table(table, folder / "jobs.parquet")
    read = hc.read_results(folder)
    assert (expected, {"renounced": 1}) == (read.metrics, read.parts["reactions"].account)
    assert {-1} == set(read.jobs.batch.tolist())


@pytest.mark.parametrize(("damage", "words"), [
    (text("jobs.parquet", None), ["no jobs.parquet"]),
    (text("summary.json", None), ["no summary.json"]),
    (rewrite("provenance.json", format=99), ["format 99", "reads format 1"]),
    (rewrite("provenance.json", label=...), ["no 'label'"]),
    (rewrite("summary.json", processors="many"), ["'many'"]),
    (rewrite("summary.json", clock={"zone": "Atlantis/City"}), ["Atlantis/City"]),
    (rewrite("summary.json", clock=None), ["provenance.json"]),
    (text("summary.json", "[]"), ["not a JSON object"]),
    (text("provenance.json", "{"), ["not JSON"]),
    (text("jobs.parquet", "number,user"), ["Parquet"]),
    (column("user", None), ["no column 'user'"]),
    (column("user", ["x"] * 5), ["column user", "string"]),
    (column("user", [1, None, 3, 4, 5]), ["empty cells"]),
    (column("state", ["asleep"] * 5), ["'asleep'", "killed"]),
])  # fmt: skip
def test_broken_results(folder, damage, words):
    """What is wrong with a folder is reported in one line that names it."""
    damage(folder)
    with pytest.raises(ResultsError) as caught:
        hc.read_results(folder)
    told = str(caught.value)
    assert [] == [word for word in [str(folder), *words] if word not in told]


def test_other_folders(folder, tmp_path):
    """A folder that is none, is empty, or holds folders of results is not one of results."""
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "no such folder"), ("empty", "not a folder of results"),
        (".", "give one of its folders: run"),
    ):  # fmt: skip
        with pytest.raises(ResultsError, match=words):
            hc.read_results(tmp_path / name)


def test_recorded_trace_is_a_run(folder, trace, tmp_path):
    """The submissions and waits of a trace stand for simulated ones; nobody is late."""
    hc.write_swf(trace, tmp_path / "log.swf")
    run = hc.read_recorded(tmp_path / "log.swf")
    assert ("recorded", 4, 5) == (run.label, run.processors, len(run.jobs))
    assert (60.0, 0.0) == (run.metrics["wait_mean_s"], run.metrics["lateness_mean_s"])
    assert 5 == run.jobs.count(State.COMPLETED)
    assert {"no processors": 1} == dict(run.reading.dropped)
    expected = {"source": "log.swf", "sha256": hc.read_swf(tmp_path / "log.swf").sha256}
    assert expected == run.reading.source
    found: list[hc.Run] = [hc.read_run(path) for path in (folder, tmp_path / "log.swf")]
    assert ["adjusted, easy", "recorded"] == [run.label for run in found]
