"""Madon et al. 2024 is reproduced: bounds on KTH, and everything around them on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.schedulers.base import Look, RunningJob, WaitingJob
from hpcrowd.environment.traces.formats.swf import parse_swf, write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.madon2024 import sensitivity
from hpcrowd.scenarios.studies.madon2024.figures import FIGURES
from hpcrowd.scenarios.studies.madon2024.measures import (
    EXPERIMENTS,
    statements,
)
from hpcrowd.scenarios.studies.madon2024.study import (
    STUDIED,
    Madon2024,
    reproduce_madon2024,
    simulate,
    texts,
)
from hpcrowd.scenarios.studies.render import refresh_page, write_pictures
from hpcrowd.scenarios.studies.running import find_logs, run_study, swap_ties
from matplotlib.figure import Figure

from tests.scenarios.studies.study_cases import KTH_FILE, rows_of_folder, shown, small_log

SDSC_FILE = "SDSC-SP2-1998-4.2-cln.swf"


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with small logs under the names of both."""
    folder = tmp_path_factory.mktemp("traces")
    write_swf(small_log(make_trace, 1), folder / f"{KTH_FILE}.gz")
    write_swf(small_log(make_trace, 2), folder / SDSC_FILE)
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Madon2024:
    """Return the study on the small logs."""
    return reproduce_madon2024(small_folder)


@pytest.fixture(scope="module")
def real_folder(traces: Path) -> Path:
    """Return the folder of real traces if it holds KTH."""
    if not list(traces.glob(f"{KTH_FILE}*")):
        pytest.skip(f"no {KTH_FILE}[.gz] in {traces}; set HPCROWD_TRACES to a folder that has it")
    return traces


@pytest.fixture(scope="module")
def study(real_folder: Path) -> Madon2024:
    """Return the study on the real traces."""
    return reproduce_madon2024(real_folder)


# ---- on the real traces ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("experiment", ["recorded", *EXPERIMENTS])
def test_bounds_hold_on_kth(study: Madon2024, experiment: str) -> None:
    """Every bound on the figures of an experiment holds on KTH, and none is missing."""
    cells = [cell for cell in study.cells if (cell.log, cell.experiment) == ("KTH", experiment)]
    bounded = [cell for cell in cells if cell.holds is not None]
    per_replay = {"recorded": 3, "infra/2": 2}.get(experiment, 3)
    replays = 1 if experiment == "recorded" else 3
    lateness = 0 if experiment == "recorded" else 2 * 3
    assert per_replay * replays + lateness == len(bounded)
    assert [] == [cell for cell in bounded if not cell.holds]


@pytest.mark.slow
@pytest.mark.traces
def test_calm_experiments_meet_the_printed_digit(study: Madon2024) -> None:
    """The recorded log, and rigid EASY and FCFS, are equal to Table 1 as printed."""
    rows = [("recorded", "recorded"), ("easy", "rigid"), ("fcfs", "rigid")]
    shown = [texts(cell)[:2] for cell in study.cells if (cell.experiment, cell.replay) in rows]
    assert 9 == len(shown[:9])
    assert [published for _, published in shown] == [ours for ours, _ in shown]


@pytest.mark.slow
@pytest.mark.traces
def test_waits_that_rounding_hides(study: Madon2024) -> None:
    """The mean waits of infra * 2, printed as 0.00 days, are 162 to 229 s (caption of Table 1)."""
    found = next(one for one in statements(study.logs["KTH"]) if one.what.startswith("mean wait"))
    assert (162, 229) == (int(found.our_low), round(found.our_high + 0.5))


@pytest.mark.slow
@pytest.mark.traces
def test_full_machines_are_full(study: Madon2024) -> None:
    """Utilization is below 40 % on the doubled machine, above 90 % on the halved (7.3.3)."""
    found = {one.what: (one.our_low, one.our_high) for one in statements(study.logs["KTH"])}
    rigid = found["utilization, rigid, infra*2, perf*2"]
    assert 36 <= rigid[0] <= rigid[1] <= 37
    assert 90 <= found["utilization, all replays, infra/2, perf/2"][0]


@pytest.mark.slow
@pytest.mark.traces
def test_reading_of_figure_5c_is_among_the_nearest(study: Madon2024) -> None:
    """Users with one job left out, n - 1, linear: nothing tried comes nearer by a hundredth."""
    readings = study.readings
    words = ("left out", "n - 1", "submitted", "linear")
    ours = next(
        one for one in readings if (one.singles, one.divisor, one.jobs, one.method) == words
    )
    assert ours.distance <= readings[0].distance + 0.001
    assert max(one.exact for one in readings) == ours.exact


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_tables(study: Madon2024, root: Path) -> None:
    """The tables in the documentation are those that the code computes, digit by digit."""
    page = (root / "docs" / "studies" / "madon2024.md").read_text()
    kth = Madon2024({"KTH": study.logs["KTH"]})
    assert page == refresh_page(page, kth.page_parts())


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("experiment", ["easy", "infra/2"])
def test_page_shows_the_measured_spread(experiment: str, kth: Trace, root: Path) -> None:
    """The spread in the documentation is what the changes of the log give."""
    page = (root / "docs" / "studies" / "madon2024.md").read_text()
    for kind, change in sensitivity.CHANGES.items():
        part = page.partition(f"<!-- generated: spread of {kind} -->")[2].partition("<!-- end")[0]
        changed = [change(kth, seed) for seed in range(sensitivity.SEEDS)]
        row = sensitivity.spread_row(changed, experiment, "a60")
        assert f"| {' | '.join(row)} |" in part.splitlines()


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("number", range(len(sensitivity.READINGS) - 1))
def test_page_shows_other_readings(number: int, kth: Trace, root: Path) -> None:
    """How many bounds other readings keep is as the documentation says."""
    page = (root / "docs" / "studies" / "madon2024.md").read_text()
    row = sensitivity.reading_row(kth, sensitivity.READINGS[number])
    assert f"| {' | '.join(row)} |" in page.splitlines()


# ---- the study on small logs -----------------------------------------------------------------


def test_missing_trace_gives_one_line(tmp_path: Path) -> None:
    """Without KTH the message names the file and the page to fetch it from."""
    with pytest.raises(TraceError) as caught:
        reproduce_madon2024(tmp_path)
    message = str(caught.value)
    assert f"{tmp_path / KTH_FILE}[.gz]: not found; fetch it from https://" in message
    assert "l_kth_sp2" in message
    assert "\n" not in message


def test_two_traces_of_one_log_are_an_error(tmp_path: Path) -> None:
    """A log that is there twice is not guessed at."""
    for name in (KTH_FILE, f"{KTH_FILE}.gz"):
        (tmp_path / name).touch()
    with pytest.raises(TraceError, match="several traces of KTH; keep only one there"):
        find_logs(tmp_path, STUDIED, ["KTH"])


def test_sdsc_is_replayed_when_it_is_there(small: Madon2024) -> None:
    """With its trace, SDSC has as many cells as KTH, but no bounds."""
    per_log = {log: [c for c in small.cells if c.log == log] for log in ("KTH", "SDSC")}
    assert (111, 111) == tuple(map(len, per_log.values()))
    assert {None} == {cell.holds for cell in per_log["SDSC"]}
    assert ["KTH", "SDSC"] == list(small.logs)


def test_progress_tells_every_step(small_folder: Path, tmp_path: Path) -> None:
    """One step to read a log and one per simulation, counted from 0; the last call says done."""
    (tmp_path / KTH_FILE).write_bytes((small_folder / f"{KTH_FILE}.gz").read_bytes())
    calls: list[tuple[str, int, int]] = []
    reproduce_madon2024(tmp_path, lambda *call: calls.append(call))
    assert [(done, 19) for done in range(20)] == [call[1:] for call in calls]
    assert ("KTH: easy rigid", "done") == (calls[1][0], calls[-1][0])


def test_json_holds_everything(small: Madon2024) -> None:
    """The data are plain: cells, runs with metrics and windows, readings, ranges and traces."""
    data = json.loads(json.dumps(small.to_json(), allow_nan=False))
    assert "madon2024" == data["study"]
    assert {"cells": 90, "hold": 90 - len(small.failures)} == data["bounds"]
    assert 222 == len(data["cells"])
    names = {"table", "log", "experiment", "replay", "quantity", "unit", "ours", "published",
             "printed", "deviation", "relative_deviation", "tolerance", "holds"}  # fmt: skip
    assert names == set(data["cells"][0])
    assert 36 == len(data["runs"])
    assert [4, 6, 8] == [window["months"] for window in data["runs"][0]["windows"]]
    assert f"{KTH_FILE}.gz" == data["traces"]["KTH"]["source"]
    assert 6 == len(data["statements"])
    assert {"KTH", "SDSC"} == {reading["log"] for reading in data["figure5c_readings"]}


def test_tables_are_shown(small: Madon2024) -> None:
    """The terminal shows three tables a log, no line longer than the page, and what failed."""
    text = shown(small)
    for heading in ("Table 1, KTH", "Table 2, SDSC", "Fig. 5c", "Ranges in the text"):
        assert heading in text
    assert len(small.failures) == text.count("not reached:")
    tables = text.partition("Ranges in the text")[0]
    assert max(map(len, tables.splitlines())) <= 100


def test_markdown_has_every_figure(small: Madon2024) -> None:
    """The tables for the documentation have a line for each row, the same number of cells each."""
    lines = [line for line in small.page_parts()["tables"].splitlines() if line.startswith("|")]
    assert 2 * (19 + 12 + 6) + 6 + 7 * 2 == len(lines)
    assert {12, 4} == {line.count("|") - 1 for line in lines}


def test_generated_parts_are_replaced() -> None:
    """Only what is between the marks of a part changes, and a second time nothing does."""
    page = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n"
    once = refresh_page(page, {"x": "new"})
    assert "a\n<!-- generated: x -->\n\nnew\n\n<!-- end of x -->\nb\n" == once
    assert once == refresh_page(once, {"x": "new"})


@pytest.mark.slow
def test_log_of_one_job(make_trace: Callable[..., Trace], tmp_path: Path) -> None:
    """A log with nearly nothing in it still gives data, tables and pictures."""
    job = {"submit": 0, "run": 5, "allocated_processors": 4, "user": 1, "wait": 0}
    write_swf(make_trace(job, header="; MaxProcs: 4"), tmp_path / KTH_FILE)
    study = reproduce_madon2024(tmp_path)
    json.dumps(study.to_json(), allow_nan=False)
    assert "| **-** | 0.99 | - |" in study.page_parts()["tables"]
    write_pictures(study.pictures(), tmp_path)
    assert len(FIGURES) == len(list(tmp_path.glob("*.png")))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn(small: Madon2024, name: str) -> None:
    """Each figure has panels with something in them, labelled, and leaves pyplot alone."""
    for log in small.logs.values():
        figure = FIGURES[name](log)
        assert isinstance(figure, Figure)
        assert figure.axes
        for panel in figure.axes:
            assert panel.has_data(), panel.get_title()
        words = {text.get_text() for part in (figure, *figure.subfigs) for text in part.texts}
        words |= {figure.get_supxlabel(), figure.get_supylabel()}
        words |= {panel.get_xlabel() for panel in figure.axes}
        words |= {part.get_supylabel() for part in figure.subfigs}
        assert words - {""}
        assert log.log in figure.get_suptitle()
    assert [] == plt.get_fignums()


@pytest.mark.slow
def test_folder_is_whole_or_absent(small: Madon2024, tmp_path: Path) -> None:
    """The folder holds data, pictures and a page; one of another user is left alone."""
    small = Madon2024({"KTH": small.logs["KTH"]})
    rows = rows_of_folder(small, tmp_path)
    assert [repr(cell.published) for cell in small.cells] == [row["published"] for row in rows]


@pytest.mark.slow
def test_command_prints_one_json_object(
    small_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With JSON asked for, stdout is one object, stderr empty; the folder has every picture."""
    run_study(
        lambda progress: reproduce_madon2024(small_folder, progress),
        out=tmp_path / "study",
        as_json=True,
    )
    captured = capsys.readouterr()
    assert "madon2024" == json.loads(captured.out)["study"]
    assert "" == captured.err
    pictures = {f"{name}_{log}.png" for log in ("kth", "sdsc") for name in FIGURES}
    assert pictures == {path.name for path in (tmp_path / "study").glob("*.png")}
    assert {b"\x89PNG"} == {path.read_bytes()[:4] for path in (tmp_path / "study").glob("*.png")}


def test_command_prints_tables(small_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without JSON it prints the tables and how many bounds hold."""
    run_study(lambda told: reproduce_madon2024(small_folder, told), out=None, as_json=False)
    captured = capsys.readouterr()
    assert "of 90 bounds hold; 222 figures compared" in captured.out
    assert "" == captured.err


# ---- sensitivity -----------------------------------------------------------------------------


def test_ties_change_places_and_nothing_else(make_trace: Callable[..., Trace]) -> None:
    """Job numbers move only among the jobs of one second."""
    trace = make_trace(*({"submit": second, "run": 5} for second in (0, 7, 7, 7, 9, 9)))
    seen = {tuple(swap_ties(trace, seed)["number"].tolist()) for seed in range(100)}
    assert 6 * 2 == len(seen)
    assert {(1,)} == {numbers[:1] for numbers in seen}
    assert {(2, 3, 4)} == {tuple(sorted(numbers[1:4])) for numbers in seen}
    assert [1, 2, 3, 4, 5, 6] == trace["number"].tolist()


def test_seconds_are_added_to_jobs_that_ran(make_trace: Callable[..., Trace]) -> None:
    """Run times grow by 0 or 1 s; jobs without a run time stay as they are."""
    trace = make_trace(*({"submit": 0, "run": run} for run in (5, 0, -1)))
    seen = {tuple(sensitivity.add_seconds(trace, seed)["run"].tolist()) for seed in range(30)}
    assert {(5, 0, -1), (6, 0, -1)} == seen


def test_last_predecessor_counts_alone() -> None:
    """A third job came 90 s after the first and 10 s after the second; if both end at once, the
    usual user thinks 90 s more, the other one only as long as after the last to end.
    """
    trace = parse_swf(
        "; MaxProcs: 2\n"
        "1 0 0 10 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "2 5 0 85 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "3 100 0 10 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    )
    fast = {"speed": "85x", "requested": "given"}
    usual = simulate(trace, "easy", "a0", **fast)
    other = simulate(trace, "easy", "a0", **fast, users=sensitivity.LastPredecessor)
    assert [0, 5, 90] == usual.jobs.submit.tolist()
    assert [0, 5, 16] == other.jobs.submit.tolist()


def test_shadow_only_does_not_use_spare_processors() -> None:
    """A long job next to the head's reservation starts under EASY, but not under the footnote."""
    queue = [WaitingJob(1, 6, 50, 0), WaitingJob(2, 1, 500, 1), WaitingJob(3, 2, 100, 2)]
    look = Look(0, queue, [RunningJob(0, 5, 100)], 3, 8)
    started = sensitivity.ShadowOnly().select(look)
    assert [3] == [job.row for job in started]
