"""The size of a machine that the trace does not give."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis import read_results, write_results
from hpcrowd.environment import Trace
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.machine_size import (
    AS_JOBS_TELL,
    MOST_HELD,
    MOST_IN_USE,
    most_in_use,
    without_found_size,
)
from hpcrowd.environment.traces.trace import take_jobs
from hpcrowd.scenarios import replay
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import text

MakeTrace = Callable[..., Trace]
Call = Callable[..., tuple[int, str, str]]


def job(submit: int, wait: int, run: int, held: int, asked: int = -1) -> dict[str, int]:
    """Return a job as the recorded values of its fields."""
    return {
        "submit": submit, "wait": wait, "run": run, "allocated_processors": held,
        "requested_processors": asked, "user": 1, "status": 1,
    }  # fmt: skip


jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(0, 15), st.integers(1, 9)),
    min_size=1,
    max_size=12,
)


@given(jobs)
def test_peak_counts_processors_in_use_at_each_second(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """The sweep over starts and ends finds what counting second by second finds."""
    start, end, held = (
        np.array(one) for one in zip(*((s + w, s + w + r, p) for s, w, r, p in rows), strict=True)
    )
    counted = max(
        int(held[(start <= second) & (second < end)].sum()) for second in range(end.max() + 1)
    )
    assert counted == most_in_use(start, end, held)


def test_size_is_the_peak_of_the_recorded_use(make_trace: MakeTrace) -> None:
    """Jobs that ran at once add up, by their starts; one that ended as another began does not."""
    trace = make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3), job(0, 15, 10, 2))
    assert 7 == trace.processors
    assert "7 processors, the peak of its recorded use, is a lower bound" in trace.size.note


def test_size_of_the_header_counts_and_has_no_note(make_trace: MakeTrace) -> None:
    """A given size is used as it is, even below the recorded use."""
    trace = make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3), header="; MaxProcs: 5")
    assert (5, "") == (trace.size.processors, trace.size.note)


def test_job_that_ran_fits(make_trace: MakeTrace) -> None:
    """The size is at least what a job that ran had asked for; one that never ran does not count."""
    trace = make_trace(job(0, 0, 10, 4, 6), job(0, 3, -1, -1, 1000))
    assert 6 == trace.processors


def test_unknown_starts_are_taken_as_in_a_replay(make_trace: MakeTrace) -> None:
    """Without any recorded start, jobs count from their submission, and that is an estimate."""
    trace = make_trace(job(0, -1, 10, 4), job(5, -1, 10, 3), job(12, -1, 10, 2))
    assert 7 == trace.processors
    assert "an estimate" in trace.size.note
    assert "lower bound" not in trace.size.note


def test_jobs_without_a_start_among_others_do_not_count(make_trace: MakeTrace) -> None:
    """If some jobs have starts, only these are known to have run at once."""
    trace = make_trace(job(0, 0, 10, 2), job(5, -1, 10, 3), job(5, 0, 10, 2))
    assert 4 == trace.processors
    assert "lower bound" in trace.size.note


def test_trace_in_which_no_job_ran(make_trace: MakeTrace) -> None:
    """Its largest job is all that is known."""
    trace = make_trace(job(0, -1, -1, -1, 3), job(0, -1, -1, -1, 8))
    assert (8, True) == (trace.processors, "its largest job" in trace.size.note)


@given(jobs)
def test_size_is_a_lower_bound(
    make_trace: MakeTrace, rows: list[tuple[int, int, int, int]]
) -> None:
    """Parts of a log never hold more than the whole."""
    whole = make_trace(*(job(*row) for row in rows))
    part = take_jobs(whole, np.arange(0, len(rows), 2))
    assert part.processors <= whole.processors


@pytest.fixture
def unsized(make_trace: MakeTrace, tmp_path: Path) -> Path:
    """A log without a size."""
    path = tmp_path / "log.swf"
    write_swf(make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3), header="; Version: 2.2"), path)
    return path


NOTE = "7 processors, the peak of its recorded use, is a lower bound"


@pytest.mark.parametrize("command", [("replay",), ("stats", "--which", "all"), ("compare",)])
def test_commands_say_that_it_is_a_lower_bound(
    call: Call, unsized: Path, command: tuple[str, ...]
) -> None:
    """Wherever the size is printed, the note is too."""
    logs = [unsized] * (2 if command[0] == "compare" else 1)
    code, output, _ = call(command[0], *logs, *command[1:])
    assert 0 == code
    assert NOTE in " ".join(output.split())


def test_report_says_that_it_is_a_lower_bound(call: Call, unsized: Path, tmp_path: Path) -> None:
    """The page of a run has the note too."""
    code, _, _ = call("report", unsized, "--out", tmp_path / "page.html")
    assert 0 == code
    assert NOTE in (tmp_path / "page.html").read_text()


def test_folder_keeps_the_note(make_trace: MakeTrace, tmp_path: Path) -> None:
    """The note is in the summary and survives; a size of your own needs none."""
    trace = make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3))
    write_results(replay(trace), tmp_path / "run", plots=False)
    assert NOTE in json.loads((tmp_path / "run" / "summary.json").read_text())["size_note"]
    assert NOTE in read_results(tmp_path / "run").size_note
    assert "" == replay(trace, processors="9").size_note


def test_size_of_a_log_of_small_jobs(make_trace: MakeTrace) -> None:
    """A machine that ran ten jobs of 60 processors and one of 4 at once is not one of 60."""
    trace = make_trace(*(job(n, 20 - n, 100, 60) for n in range(10)), job(9, 30, 10, 4))
    assert 604 == trace.processors


def test_size_follows_what_is_replaced(make_trace: MakeTrace) -> None:
    """It is found once; another header or column changes it."""
    trace = make_trace(job(0, 5, 10, 4), job(1, 5, 10, 3))
    assert trace.size is trace.size
    trace.columns["wait"] = np.array([0, 50])
    assert 4 == trace.processors
    trace.header.lines.append(b"; MaxProcs: 9")
    assert 9 == trace.processors


@pytest.mark.parametrize(
    ("begin", "what"),
    [(MOST_HELD, "the peak of its recorded use"), (MOST_IN_USE, "the peak of its recorded use"),
     (AS_JOBS_TELL, "as many as jobs were seen on")],
)  # fmt: skip
def test_size_that_a_reader_found_is_a_lower_bound(
    make_trace: MakeTrace, begin: str, what: str
) -> None:
    """Formats without a size put the peak into the header, with a note; commands say so, too."""
    trace = make_trace(job(0, 0, 10, 4), header=f"; MaxProcs: 6\n; Note: {begin}; more")
    expected = f"the trace does not give the size of the machine; 6 processors, {what}, is a lower"
    assert (6, True) == (trace.size.processors, trace.size.note.startswith(expected))
    assert [b"; MaxProcs: 6"] == without_found_size(trace.header).lines


def test_convert_tells_and_takes_the_size(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of Slurm has no size: the converted one says so, unless --processors gives it."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.txt").write_bytes(text({"JobID": "1"}))
    told = "1 processor, the peak of its recorded use, is a lower bound; set it with --processors"
    assert told in call("convert", "jobs.txt", "found.swf")[1]
    assert told in call("replay", "found.swf")[1]
    assert "lower bound" not in call("convert", "jobs.txt", "given.swf", "--processors", 64)[1]
    assert "lower bound" not in call("replay", "given.swf")[1]
    assert MOST_IN_USE in Path("found.swf").read_text()
    assert MOST_IN_USE not in Path("given.swf").read_text()


def test_run_of_another_size_is_not_noted_as_found(make_trace: MakeTrace) -> None:
    """The trace of a run has the size of the simulated machine."""
    trace = make_trace(job(0, 0, 10, 4), header=f"; MaxProcs: 6\n; Note: {MOST_IN_USE}")
    assert "" == replay(trace, processors=9).to_trace().size.note


def test_real_logs_come_near_their_size(read_trace: Callable[[str], Trace]) -> None:
    """Without the size in its header, DAS2 gets 64 processors of 64, CEA 91,838 of 93,312."""
    for name, expected in (("DAS2-fs1", 64), ("CEA-Curie", 91_838)):
        whole = read_trace(name)
        lines = [
            one for one in whole.header.lines if b"MaxProcs" not in one and b"MaxNodes" not in one
        ]
        assert expected == Trace(Header(lines), whole.columns).processors
