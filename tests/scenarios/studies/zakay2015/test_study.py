"""Zakay and Feitelson 2015 is reproduced: what is required on KTH, and the study on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.render import VERDICTS
from hpcrowd.scenarios.studies.running import run_study
from hpcrowd.scenarios.studies.study import claims_of
from hpcrowd.scenarios.studies.zakay2015 import readings
from hpcrowd.scenarios.studies.zakay2015.figures import pictures_of
from hpcrowd.scenarios.studies.zakay2015.measures import (
    COLUMNS,
    MODELS,
    SIMULATIONS,
    cells_of,
)
from hpcrowd.scenarios.studies.zakay2015.statements import RULES
from hpcrowd.scenarios.studies.zakay2015.study import (
    SEEDS,
    Zakay2015,
    reproduce_zakay2015,
    study_log,
    table1_row,
)
from matplotlib.figure import Figure

from tests.scenarios.studies.study_cases import KTH_FILE, rows_of_folder, shown, small_log

CEA_FILE = "CEA-Curie-2011-2.1-cln.swf"


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with small logs under the names of two."""
    folder = tmp_path_factory.mktemp("traces")
    write_swf(small_log(make_trace, 1), folder / f"{KTH_FILE}.gz")
    write_swf(small_log(make_trace, 2), folder / CEA_FILE)
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Zakay2015:
    """Return the study on the small logs."""
    return reproduce_zakay2015(small_folder, seeds=2)


@pytest.fixture(scope="module")
def study(kth: Trace) -> Zakay2015:
    """Return the study on KTH."""
    return Zakay2015({"KTH": study_log("KTH", kth)})


@pytest.fixture(scope="module")
def page(root: Path) -> list[str]:
    """Return the lines of the page on the study."""
    return (root / "docs" / "studies" / "zakay2015.md").read_text().splitlines()


# ---- on the real traces ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.traces
def test_required_figures_are_reached_on_kth(study: Zakay2015) -> None:
    """Fluid / adjusted is 0.76 within 0.05, fluid < adjusted < conventional, no job moved."""
    required = list(study.traces["KTH"].requirements)
    assert 3 == len(required)
    assert [] == [one for one in required if not one.holds]
    fluid = study.traces["KTH"].ratio("fluid", "adjusted").mean
    assert pytest.approx(0.76, abs=0.05) == fluid
    assert study.reached


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(
    "name",
    [
        "identity",
        "adjusted flattens the week",
        "distribution has peaks",
        "fluid keeps the week",
        "fluid keeps the throughput",
        "FIFO far from EASY without",
        "feedback narrows the gap",
        "shorter queues with feedback",
    ],
)
def test_statement_holds_on_kth(study: Zakay2015, name: str) -> None:
    """What the text says of all logs holds on KTH."""
    (claim,) = (one for one in claims_of(RULES, study.traces) if one.name == name)
    assert claim.holds, claim


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_figures(study: Zakay2015, page: list[str]) -> None:
    """Table I and the statements on KTH are those that the code computes, digit by digit."""
    log = study.traces["KTH"]
    for cell in cells_of(log):
        assert f"| {' | '.join(table1_row(cell))} |" in page
    heading = next(line for line in page if line.startswith("| statement"))
    column = [text.strip() for text in heading.split("|")].index("KTH")
    for rule, claim in zip(RULES, claims_of(RULES, {"KTH": log}), strict=True):
        (line,) = (line for line in page if line.startswith(f"| {rule.what} ({rule.section}) |"))
        assert f"{VERDICTS[claim.holds]}: {claim.text}" == line.split("|")[column].strip()


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_effects(kth: Trace, page: list[str]) -> None:
    """What makes fluid users wait longer or shorter on KTH is as the page says."""
    assert f"| {' | '.join(readings.effect_row('KTH', kth))} |" in page


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_other_readings(kth: Trace, page: list[str]) -> None:
    """Table I of KTH under another setting is as the page says."""
    for row in readings.reading_rows("KTH", kth, readings.READINGS[:2]):
        assert f"| {' | '.join(row)} |" in page


# ---- what is published -----------------------------------------------------------------------


def test_published_table_has_every_figure() -> None:
    """Table I has four user models on eight logs."""
    rows = published_rows("zakay2015_table1")
    assert [*MODELS] == [row["user_model"] for row in rows]
    for row in rows:
        assert {*COLUMNS.values(), "user_model"} == set(row)
        assert all(int(row[column]) > 0 for column in COLUMNS.values())


# ---- the study on small logs -----------------------------------------------------------------


def test_every_simulation_is_run(small: Zakay2015) -> None:
    """Four user models under EASY, two under FIFO, each with its seeds; absent logs are named."""
    for log in small.traces.values():
        assert {*SIMULATIONS} == set(log.outcomes)
        assert [0, 1] == [one.seed for one in log.of("fluid", "fcfs")]
    assert ["KTH", "CEA"] == list(small.traces)
    assert {*COLUMNS} - {"KTH", "CEA"} == set(small.absent)
    assert {"80640", None} == {log.settings.get("processors") for log in small.traces.values()}


def test_identity_holds_on_small_logs(small: Zakay2015) -> None:
    """Under the recorded schedule no adjusted user moves a job."""
    assert [0, 0] == [log.moved for log in small.traces.values()]


def test_same_seeds_same_figures(make_trace: Callable[..., Trace], small: Zakay2015) -> None:
    """A study run again gives the same; seeds differ from each other."""
    again = study_log("KTH", small_log(make_trace, 1), 2)
    waits = small.traces["KTH"].waits("distribution")
    assert waits.tolist() == again.waits("distribution").tolist()
    assert waits[0] != waits[1]


def test_small_logs_get_more_seeds(make_trace: Callable[..., Trace]) -> None:
    """Ten seeds for a log of few lines."""
    jobs = ({"submit": at, "run": 5, "allocated_processors": 1, "user": 1} for at in (0, 9))
    trace = make_trace(*jobs, header="; MaxProcs: 4")
    assert SEEDS == study_log("KTH", trace).seeds


def test_no_seed_is_an_error(tmp_path: Path) -> None:
    """A wrong number of seeds is reported before anything is read."""
    with pytest.raises(QuantityError, match="seeds 0: at least 1"):
        reproduce_zakay2015(tmp_path, seeds=0)


def test_progress_tells_every_step(small_folder: Path) -> None:
    """One step to read a log, one for the identity, one per simulation; the last says done."""
    calls: list[tuple[str, int, int]] = []
    reproduce_zakay2015(small_folder, lambda *call: calls.append(call), seeds=1, only=["KTH"])
    assert [(done, 8) for done in range(9)] == [call[1:] for call in calls]
    assert f"KTH: reading {KTH_FILE}.gz" == calls[0][0]
    assert ("KTH: conventional, EASY, 1 seeds", "done") == (calls[2][0], calls[-1][0])


def test_json_holds_everything(small: Zakay2015) -> None:
    """The data are plain: table, statements, what was required, every simulation with its seed."""
    data = json.loads(json.dumps(small.to_json(), allow_nan=False))
    assert "zakay2015" == data["study"]
    assert 2 * 4 == len(data["table1"])
    assert 2 * len(RULES) == len(data["statements"])
    assert 2 + 2 == len(data["required"])
    assert 2 * len(SIMULATIONS) == len(data["logs"]["CEA"]["simulations"])
    assert f"{KTH_FILE}.gz" == data["logs"]["KTH"]["trace"]["source"]


def test_tables_are_shown(small: Zakay2015) -> None:
    """The terminal shows the table, each statement, and what is required; nothing is cut off."""
    text = shown(small)
    for words in ("Table I", "distribution", "Required", "Logs of Table I that are not available"):
        assert words in text
    assert 2 * len(RULES) == text.count(": holds: ") + text.count(": does not hold: ")
    assert max(map(len, text.splitlines())) <= 100


def test_markdown_has_every_figure(small: Zakay2015) -> None:
    """Each table has a line for each row, the same number of cells each."""
    parts = small.page_parts()
    for part, rows in (("table 1", 2 * 4), ("statements", len(RULES)), ("required", 2 + 2)):
        lines = parts[part].splitlines()
        assert 2 + rows == len(lines)
        assert 1 == len({line.count("|") for line in lines})


def test_log_of_one_job(make_trace: Callable[..., Trace], tmp_path: Path) -> None:
    """A log with nearly nothing in it still gives data, tables and pictures."""
    job = {"submit": 0, "run": 5, "allocated_processors": 4, "user": 1, "wait": 0}
    write_swf(make_trace(job, header="; MaxProcs: 4"), tmp_path / KTH_FILE)
    study = reproduce_zakay2015(tmp_path, seeds=1)
    json.dumps(study.to_json(), allow_nan=False)
    assert "| - | - | 0.76 |" in study.page_parts()["table 1"]
    study.write(tmp_path / "study")
    assert not study.reached


@pytest.mark.parametrize("name", [f"figure{number}" for number in range(5, 11)])
def test_figures_are_drawn(small: Zakay2015, name: str) -> None:
    """Each figure has a labelled panel per log with something in it, and leaves pyplot alone."""
    logs = list(small.traces.values())
    figure = next(one.draw() for one in pictures_of(logs) if one.name == name)
    assert isinstance(figure, Figure)
    assert [log.log for log in logs] == [panel.get_title(loc="left") for panel in figure.axes]
    assert all(panel.has_data() for panel in figure.axes)
    assert figure.axes[-1].get_xlabel()
    assert name.removeprefix("figure") in figure.texts[0].get_text()
    assert [] == plt.get_fignums()


def test_folder_is_whole_or_absent(small: Zakay2015, tmp_path: Path) -> None:
    """The folder holds data, pictures and a page; one of another user is left alone."""
    assert 2 * 2 * len(SIMULATIONS) == len(rows_of_folder(small, tmp_path))
    pictures = {path.name for path in (tmp_path / "study").glob("*.png")}
    assert {f"figure{number}.png" for number in range(5, 11)} == pictures


def test_command_prints_one_json_object(
    small_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With JSON asked for, stdout is one object and stderr empty; the answer says what failed."""
    reached = run_study(
        lambda progress: reproduce_zakay2015(small_folder, progress, seeds=1),
        out=None,
        as_json=True,
    )
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["reached"] is reached
    assert "" == captured.err
