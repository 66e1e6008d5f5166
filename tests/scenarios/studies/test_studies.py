"""What studies share: finding logs, telling progress, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.studies.options import Option, arguments_of, options_of
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.refresh import command as refresh_command
from hpcrowd.scenarios.studies.refresh import page_of, refresh
from hpcrowd.scenarios.studies.registry import FOLDER, study_entry, study_names
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs
from hpcrowd.scenarios.studies.study import of_plain, plain
from typer.testing import CliRunner


def test_logs_are_found_by_their_names(tmp_path: Path) -> None:
    """Plain or gzipped, any version that the star stands for, in the order asked for."""
    for name in ("LANL-CM5-1994-4.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln.swf", "other.swf"):
        (tmp_path / name).touch()
    found = find_logs(tmp_path, LOGS)
    assert {
        "KTH": "KTH-SP2-1996-2.1-cln.swf",
        "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz",
    } == {name: path.name for name, path in found.items()}


def test_folder_without_logs_gives_one_line(tmp_path: Path) -> None:
    """The message names what was looked for and where to fetch it."""
    with pytest.raises(TraceError) as caught:
        find_logs(tmp_path, LOGS)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: no trace of KTH, SDSC-SP2, ")
    assert "fetch one, such as KTH-SP2-1996-2.1-cln.swf.gz from https://" in message
    assert "\n" not in message


def test_steps_are_counted_from_nothing_done() -> None:
    """Each step is reported with those done before it; the last call says done."""
    calls: list[tuple[str, int, int]] = []
    steps = Steps(2, lambda *call: calls.append(call))
    for label in ("a", "b"):
        steps.begin(label)
    steps.end()
    assert [("a", 0, 2), ("b", 1, 2), ("done", 2, 2)] == calls


# ---- the registry ----------------------------------------------------------------------------


def test_studies_are_found_by_folder() -> None:
    """Each has a command whose help is its line; the first option is where its input is."""
    listed = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"})
    for name in study_names():
        run, study = study_entry(name)
        assert name == study.name
        assert study.about in listed.output
        assert options_of(run)[0].name == ("records" if name == "slurm" else "traces")


def test_unknown_study_is_named() -> None:
    """The message lists the studies."""
    with pytest.raises(QuantityError, match="study 'madon1999': not known; choose madon2024, "):
        study_entry("madon1999")


def test_every_published_table_has_a_source() -> None:
    """A study says where each of its tables comes from."""
    declared: dict[str, str] = {}
    for name in study_names():
        declared.update(study_entry(name).study.published)
    assert {path.stem for path in FOLDER.glob("*/published/*.csv")} == set(declared)
    assert all((published_rows(name) and ", Table" in text) or "Fig" in text or "text" in text
               for name, text in declared.items())  # fmt: skip


# ---- options ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """A plan with an option, and a field for Python only."""

    jobs: Annotated[int, Option("Jobs.", least=1)] = 5
    degrees: tuple[float, ...] = (0.0,)


def run(
    place: Annotated[str, Option("Where.")],
    size: Size | None = None,
    *,
    loads: Annotated[
        tuple[float, ...],
        Option("Loads.", name="at", parse=lambda text: (float(text),), shown=lambda at: f"{at[0]}"),
    ] = (0.5,),
    only: str = "all",
) -> None:
    """A study's function."""


def test_options_are_those_of_parameters_and_plans() -> None:
    """Annotated parameters and fields are options; texts are parsed; plans are made."""
    options = options_of(run)
    assert ["place", "jobs", "at"] == [one.name for one in options]
    assert [5, "0.5"] == [one.declared().default for one in options[1:]]
    found = arguments_of(options, {"place": "here", "jobs": 7, "at": "0.9"})
    assert {"place": "here", "size": Size(7), "loads": (0.9,)} == found


# ---- pages, and stored runs ------------------------------------------------------------------


def test_page_needs_traces_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a folder of traces, or without a trace in it, one line says so; exit code 2."""
    for traces, words in ((None, "give --traces FOLDER"), (tmp_path, "no trace of")):
        with pytest.raises(typer.Exit) as ended:
            refresh_command("zakay2015", traces=traces)
        assert 2 == ended.value.exit_code
        error = capsys.readouterr().err
        assert 1 == error.count("\n")
        assert words in error


def test_part_that_nobody_makes_is_an_error(tmp_path: Path) -> None:
    """A page that asks for a generated part that its study does not have is left as it is."""
    name = "minh2012-correlation"
    (tmp_path / "studies").mkdir()
    stored = page_of(name).with_suffix(".json")
    (tmp_path / "studies" / stored.name).write_bytes(stored.read_bytes())
    page = page_of(name, tmp_path)
    page.write_text("<!-- generated: weather -->\n\n<!-- end of weather -->\n")
    before = page.read_text()
    with pytest.raises(QuantityError, match="generated part 'weather': the study does not make it"):
        refresh(name, docs=tmp_path)
    assert before == page.read_text()


def test_plain_data_are_read_back() -> None:
    """Arrays, tuples and dataclasses come out again; what is not a number is null in between."""
    values = {"degrees": [1.23456, 2.0], "jobs": 3}
    assert Size(3, (1.23456, 2.0)) == of_plain(Size, values)
    assert {"jobs": 3, "degrees": [0.0]} == plain(Size(3))
    assert [1.2, None] == plain(np.array([1.23, np.nan]), 2)
