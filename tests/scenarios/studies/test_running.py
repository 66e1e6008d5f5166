"""What studies share in running: finding logs, steps, options, plain data, refreshed pages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.scenarios.studies.options import Option, arguments_of, options_of, parse_loads
from hpcrowd.scenarios.studies.refresh import MEASURED, page_of, refresh
from hpcrowd.scenarios.studies.refresh import command as refresh_command
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, log_name, swap_ties
from hpcrowd.scenarios.studies.study import of_plain, plain


def test_logs_are_found_by_their_names(tmp_path):
    """Plain or gzipped, any version that the star stands for, in the order asked for."""
    for name in ("LANL-CM5-1994-4.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln.swf", "other.swf"):
        (tmp_path / name).touch()
    found = {name: path.name for name, path in find_logs(tmp_path, LOGS).items()}
    assert {"KTH": "KTH-SP2-1996-2.1-cln.swf", "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz"} == found
    assert "LANL-CM5-1994-4.1-cln" == log_name(Path(found["LANL-CM5"]))
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").touch()
    with pytest.raises(TraceError, match="several traces of KTH; keep only one there"):
        find_logs(tmp_path, LOGS)


def test_what_is_not_found_is_one_line(tmp_path):
    """The message names what was looked for, or the log that is needed, and where to fetch it."""
    for needed, begins, place in (
        ((), ": no trace of KTH, SDSC-SP2, ", "fetch one, such as KTH-SP2-1996-2.1-cln.swf.gz"),
        (["HPC2N"], "/HPC2N-2002-2.2-cln.swf[.gz]: not found; fetch it from https://", "l_hpc2n"),
    ):
        with pytest.raises(TraceError) as caught:
            find_logs(tmp_path, LOGS, needed)
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}{begins}")
        assert place in message
        assert "\n" not in message


def test_steps_are_counted_from_nothing_done():
    """Each step is reported with those done before it; the last call says done."""
    calls: list[tuple[str, int, int]] = []
    steps = Steps(2, lambda *call: calls.append(call))
    for label in ("a", "b"):
        steps.begin(label)
    steps.end()
    assert [("a", 0, 2), ("b", 1, 2), ("done", 2, 2)] == calls


def test_ties_change_places_and_nothing_else(make_trace):
    """Job numbers move only among the jobs of one second."""
    trace = make_trace(*({"submit": second, "run": 5} for second in (0, 7, 7, 7, 9, 9)))
    seen = {tuple(swap_ties(trace, seed)["number"].tolist()) for seed in range(100)}
    assert 6 * 2 == len(seen)
    assert {(1,)} == {numbers[:1] for numbers in seen}
    assert {(2, 3, 4)} == {tuple(sorted(numbers[1:4])) for numbers in seen}
    assert [1, 2, 3, 4, 5, 6] == trace["number"].tolist()


# ---- options and plain data ------------------------------------------------------------------


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


def test_options_are_those_of_parameters_and_plans():
    """Annotated parameters and fields are options; texts are parsed; plans are made."""
    options = options_of(run)
    assert ["place", "jobs", "at"] == [one.name for one in options]
    assert [5, "0.5"] == [one.declared().default for one in options[1:]]
    found = arguments_of(options, {"place": "here", "jobs": 7, "at": "0.9"})
    assert {"place": "here", "size": Size(7), "loads": (0.9,)} == found


def test_loads_are_numbers_between_commas():
    """Anything else is refused with an example."""
    assert (0.7, 1.0) == parse_loads("0.7,1")
    with pytest.raises(QuantityError, match=r"loads '0\.7;0\.9': not numbers; write for example"):
        parse_loads("0.7;0.9")


def test_plain_data_are_read_back():
    """Arrays, tuples and dataclasses come out again; what is not a number is null in between."""
    values = {"degrees": [1.23456, 2.0], "jobs": 3}
    assert Size(3, (1.23456, 2.0)) == of_plain(Size, values)
    assert {"jobs": 3, "degrees": [0.0]} == plain(Size(3))
    assert [1.2, None] == plain(np.array([1.23, np.nan]), 2)


# ---- pages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zakay2015", *MEASURED])
def test_page_needs_traces_that_are_there(tmp_path, capsys, name):
    """Without a folder of traces, or without a trace in it, one line says so; exit code 2."""
    words = {
        "zakay2015": "no trace of",
        "validation": "cln.swf[.gz]: not found; fetch it from",
    }.get(name, "")
    for traces, told in ((None, f"{name}: its page is made from traces; give"), (tmp_path, words)):
        with pytest.raises(typer.Exit) as ended:
            refresh_command(name, traces=traces)
        error = capsys.readouterr().err
        assert (2, 1) == (ended.value.exit_code, error.count("\n"))
        assert told in error


def test_part_that_nobody_makes_is_an_error(tmp_path):
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
