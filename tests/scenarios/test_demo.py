"""The demo: what it says is true, and what it leaves behind is whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis import Run
from hpcrowd.analysis.results import write_run
from hpcrowd.environment import HpcrowdError, QuantityError, State, read_swf
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.quantities import format_duration
from hpcrowd.scenarios.commands.simulate.demo import command as demo_command
from hpcrowd.scenarios.demo import RUNS, observations, run_demo

DAYS = 3

#: Files of a run that have the same bytes whenever the seed is the same.
SAME = ("jobs.parquet", "summary.json", "trace.swf.gz")


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Return the four runs of a short demo."""
    return run_demo(days=DAYS)


def test_runs_are_the_four(runs: list[Run]) -> None:
    """Oblivious and feedback, FCFS and EASY; the population and the seed are the same."""
    labels = ["oblivious, FCFS", "oblivious, EASY", "feedback, FCFS", "feedback, EASY"]
    assert labels == [run.label for run in runs]
    assert len(RUNS) == len(runs)
    for run in runs:
        kept = {k: v for k, v in run.configuration.items() if k not in ("users", "scheduler")}
        assert {"kind": "demo", "days": DAYS, "seed": 0} == {
            key: kept[key] for key in ("kind", "days", "seed")
        }


def test_jobs_in_jobs_out(runs: list[Run]) -> None:
    """Everything that was submitted, before the last day had ended, ran to its end."""
    for run in runs:
        assert len(run.jobs) == run.jobs.count(State.COMPLETED) > 0
        assert run.jobs.submit.max() < DAYS * DAY


def test_only_feedback_depends_on_the_scheduler(runs: list[Run]) -> None:
    """Submissions are the same under both schedulers without feedback, and not with it."""
    oblivious_fcfs, oblivious_easy, fcfs, easy = (run.jobs.submit.tolist() for run in runs)
    assert oblivious_fcfs == oblivious_easy
    assert fcfs != easy


def test_seeds() -> None:
    """Another seed makes other jobs; the same one the same."""
    first, again, other = (run_demo(days=1, seed=seed) for seed in (0, 0, 1))
    for one, two, three in zip(first, again, other, strict=True):
        assert np.array_equal(one.jobs.matrix, two.jobs.matrix)
        assert not np.array_equal(one.jobs.run_time, three.jobs.run_time)


def test_same_seed_same_bytes(runs: list[Run], tmp_path: Path) -> None:
    """Tables, metrics and traces of the same seed are the same byte for byte."""
    for run, again in zip(runs, run_demo(days=DAYS), strict=True):
        folders = tmp_path / run.label / "a", tmp_path / run.label / "b"
        for folder, one in zip(folders, (run, again), strict=True):
            folder.mkdir(parents=True)
            write_run(one, folder, plots=False)
        for name in SAME:
            assert folders[0].joinpath(name).read_bytes() == folders[1].joinpath(name).read_bytes()


def test_trace_shows_what_users_reacted_to(runs: list[Run]) -> None:
    """With feedback, preceding job's end plus think time is the submission; same user."""
    for run in runs:
        trace = run.to_trace()
        place = {number: row for row, number in enumerate(trace["number"].tolist())}
        rows = np.flatnonzero(trace["preceding"] >= 0)
        assert (run.after is not None) == (len(rows) > 0)
        for row in rows:
            before = place[int(trace["preceding"][row])]
            end = sum(int(trace[name][before]) for name in ("submit", "wait", "run"))
            assert int(trace["submit"][row]) == end + int(trace["think_time"][row])
            assert trace["user"][row] == trace["user"][before]
        assert np.all(trace["think_time"] >= -1)


def test_trace_can_be_read_again(runs: list[Run], tmp_path: Path) -> None:
    """The trace of generated users is one that can be replayed."""
    write_run(runs[-1], tmp_path, plots=False)
    trace = read_swf(tmp_path / "trace.swf.gz")
    assert len(runs[-1].jobs) == len(trace)
    assert 128 == trace.processors
    assert sorted(runs[-1].jobs.submit.tolist()) == trace["submit"].tolist()


def test_observations_are_taken_from_the_numbers(runs: list[Run]) -> None:
    """The sentences name the jobs and the mean wait of each run."""
    said = " ".join(observations(runs))
    assert [] == [run.label for run in runs if f" {len(run.jobs):,} " not in said]
    waits = [format_duration(run.metrics["wait_mean_s"]) for run in runs]
    assert [] == [wait for wait in waits if wait not in said]


def test_observations_call_a_loss_a_loss(runs: list[Run]) -> None:
    """With the schedulers in the wrong order, waiting is said to cost."""
    turned = observations([runs[1], runs[0], runs[2], runs[2]])[-1]
    assert "costs" in turned
    assert "changes no wait" in turned
    assert "0% more" in turned


def test_command_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder holds report, pictures and a folder per run; the table is on stdout."""
    out = tmp_path / "demo"
    demo_command(out, days=DAYS, seed=0, as_json=False)
    printed = capsys.readouterr()
    assert "feedback, EASY" in printed.out
    assert str(out / "report.html") in printed.err
    top = {path.name for path in out.iterdir()}
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert {"comparison.png", "queues.png", "report.html", "provenance.json"} == top - folders
    assert {"oblivious-fcfs", "oblivious-easy", "feedback-fcfs", "feedback-easy"} == folders
    for folder in folders:
        files = {path.name for path in (out / folder).iterdir()}
        assert {*SAME, "provenance.json", "overview.png"} == files
    report = (out / "report.html").read_text()
    assert 2 == len(re.findall(r'src="data:image/png;base64,[A-Za-z0-9+/=]{1000,}"', report))
    assert ["demo"] * 2 == [
        json.loads((out / place / "provenance.json").read_text())["configuration"]["kind"]
        for place in (".", "feedback-easy")
    ]


@pytest.mark.slow
def test_command_replaces_an_earlier_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second demo takes the place of the first; with --json, stdout is one object."""
    out = tmp_path / "demo"
    demo_command(out, days=1, seed=0, as_json=True)
    first = json.loads(capsys.readouterr().out)
    demo_command(out, days=1, seed=1, as_json=True)
    second = json.loads(capsys.readouterr().out)
    assert (0, 1) == (first["seed"], second["seed"])
    assert first["runs"][0]["jobs_in"] == first["runs"][1]["jobs_in"]
    assert (
        second["runs"][3]["wait_mean_s"]
        == json.loads((out / "feedback-easy" / "summary.json").read_text())["wait_mean_s"]
    )
    assert ["demo"] == [path.name for path in tmp_path.iterdir()]


def test_command_spares_other_folders(tmp_path: Path) -> None:
    """A folder that hpcrowd did not write is left alone, and nothing is begun."""
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(HpcrowdError, match="choose another --out"):
        demo_command(tmp_path, days=1, seed=0, as_json=False)
    assert ["mine.txt"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(("days", "seed", "processors"), [(0, 0, 128), (1, -1, 128), (1, 0, 0)])
def test_impossible_demos_are_refused(days: int, seed: int, processors: int) -> None:
    """Days, seed and processors that cannot be are reported in one line."""
    with pytest.raises(QuantityError, match=r"days 0|seed -1|processors 0"):
        run_demo(days, seed, processors)


def test_progress_names_each_run() -> None:
    """Who asks for progress hears the label of each run before it begins."""
    heard: list[str] = []
    made = run_demo(days=1, progress=heard.append)
    assert [run.label for run in made] == heard
