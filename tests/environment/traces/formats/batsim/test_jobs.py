"""Jobs of runs of Batsim are read, and ours are written so that evalys draws them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_batsim_jobs,
    parse_batsim_jobs,
    parse_swf,
    write_trace,
)
from hpcrowd.environment.traces.formats.batsim.jobs import COLUMNS, count_of, last_of
from hypothesis import given

from tests.support.neighbours import any_trace, damaged, round_trip, told_in_one_line

#: As Batsim writes it: a job that ended, one that was killed, one that was rejected.
JOBS = """\
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,\
success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,\
stretch,allocated_resources,consumed_energy,metadata
5,w0,delay60,0.000000,4,90.000000,1,COMPLETED_SUCCESSFULLY,5.000000,60.000000,65.000000,\
5.000000,65.000000,1.083333,0-2 7,-1.000000,""
6,w0,delay99,1.500000,2,50.000000,0,COMPLETED_WALLTIME_REACHED,1.500000,50.000000,51.500000,\
0.000000,50.000000,1.000000,3-4,-1.000000,"a, ""b"" c"
7,w0,big,9.000000,400,-1,0,REJECTED,,,,,,,,,""
"""
SWF = """\
; MaxProcs: 8
1 0 5 60 4 -1 -1 4 90 -1 1 -1 -1 -1 -1 -1 -1 -1
2 0 5 60 3 -1 -1 3 60 -1 0 -1 -1 -1 -1 -1 -1 -1
3 1 64 10 6 -1 -1 6 90 -1 0 -1 -1 -1 -1 -1 -1 -1
4 2 3 1000 1 -1 -1 1 -1 -1 5 -1 -1 -1 -1 -1 -1 -1
5 3 -1 -1 -1 -1 -1 2 9 -1 5 -1 -1 -1 -1 -1 -1 -1
6 80 0 0 2 -1 -1 2 9 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


def test_story() -> None:
    """Times, sizes, states and resources are where they belong, exactly."""
    trace = parse_batsim_jobs(JOBS)
    assert [5, 6, 7] == trace["number"].tolist()
    assert [0, 1.5, 9] == trace["submit"].tolist()
    assert [5, 0, -1] == trace["wait"].tolist()
    assert [60, 50, -1] == trace["run"].tolist()
    assert [4, 2, -1] == trace["allocated_processors"].tolist()
    assert [4, 2, 400] == trace["requested_processors"].tolist()
    assert [90, 50, -1] == trace["requested_time"].tolist()
    assert [1, 0, 5] == trace["status"].tolist()
    assert {
        "workload_name": ["w0", "w0", "w0"],
        "profile": ["delay60", "delay99", "big"],
        "allocated_resources": ["0-2 7", "3-4", ""],
        "consumed_energy": ["-1.000000", "-1.000000", ""],
        "metadata": ["", 'a, "b" c', ""],
    } == {name: values.tolist() for name, values in trace.extra.items()}
    assert 8 == trace.processors  # resource 7 is the last one that is known


def test_what_was_read_is_written_as_it_was() -> None:
    """Resources, names and texts of Batsim come back, in its columns and its order."""
    written = generate_batsim_jobs(parse_batsim_jobs(JOBS)).decode().splitlines()
    assert ",".join(COLUMNS) == written[0]
    assert (
        "5,w0,delay60,0,4,90,1,COMPLETED_SUCCESSFULLY,5,60,65,5,65,1.0833333333333333,0-2 7,"
        "-1.000000," == written[1]
    )
    assert "7,w0,big,9,400,-1,0,REJECTED,,,,,,,,," == written[3]


def test_jobs_are_placed_by_first_fit() -> None:
    """Jobs of a pool get the lowest processors that are free; states show how they ended."""
    rows = [line.split(",") for line in generate_batsim_jobs(parse_swf(SWF)).decode().splitlines()]
    columns = {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}
    assert ["0-3", "4-6", "0-5", "7", "", "0-1"] == columns["allocated_resources"]
    assert [
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_WALLTIME_REACHED",
        "COMPLETED_FAILED",
        "COMPLETED_KILLED",
        "REJECTED",
        "COMPLETED_SUCCESSFULLY",
    ] == columns["final_state"]
    assert ["1", "0", "0", "0", "0", "1"] == columns["success"]
    assert ["5", "5", "65", "5", "", "80"] == columns["starting_time"]
    assert ["65", "65", "75", "1005", "", "80"] == columns["finish_time"]
    assert ["1.0833333333333333"] * 2 == columns["stretch"][:2]
    assert ["", ""] == columns["stretch"][4:]


def test_a_job_in_pieces() -> None:
    """Where no stretch of free processors is long enough, a job gets several."""
    trace = parse_swf(
        "; MaxProcs: 6\n"
        "1 0 0 9 2 -1 -1 2 9 -1 1 1 1 -1 -1 -1 -1 -1\n"
        "2 0 0 90 2 -1 -1 2 90 -1 1 1 1 -1 -1 -1 -1 -1\n"
        "3 9 1 9 4 -1 -1 4 9 -1 1 1 1 -1 -1 -1 -1 -1\n"
    )
    back = parse_batsim_jobs(generate_batsim_jobs(trace))
    assert ["0-1", "2-3", "0-1 4-5"] == back.extra["allocated_resources"].tolist()


def test_columns_in_any_order_and_older_names() -> None:
    """Columns are found by name; older names are known, others are ignored."""
    trace = parse_batsim_jobs(
        "execution_time,allocated_processors,jobID,colour,finish_time,submission_time,"
        "starting_time,requested_number_of_processors,success\n"
        "281.0,20 19,134,red,2253.0,1971.0,1972.0,2,1\n\n"
        ",,w0!135,,,1980,,3,\n"
    )
    assert [134, 135] == trace["number"].tolist()
    assert [1, -1] == trace["wait"].tolist()
    assert [281, -1] == trace["run"].tolist()
    assert [2, -1] == trace["allocated_processors"].tolist()
    assert [2, 3] == trace["requested_processors"].tolist()
    assert [1, -1] == trace["status"].tolist()
    assert ["", "w0!135"] == trace.extra["job_id"].tolist()
    assert 21 == trace.processors


def test_states_that_are_not_known_are_counted() -> None:
    """A job whose state is not a word of Batsim has none; one that was running is not over."""
    trace = parse_batsim_jobs(
        "job_id,submission_time,final_state\n1,0,RUNNING\n2,0,SLEEPING\n3,0,COMPLETED_KILLED\n"
    )
    assert [-1, -1, 5] == trace["status"].tolist()
    assert {"final state not recognised: status unknown": 1} == trace.repaired


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [("", 0, -1), ("5", 1, 5), ("0-3 5", 5, 5), ("5 2-2 7 1-3", 5, 7), ("0-9 3-4 9-12", 13, 12),
     ("3-1", None, None), ("a", None, None), ("1,2", None, None), ("1  2", None, None),
     ("9" * 16, None, None), ("-1", None, None)],
)  # fmt: skip
def test_sets_of_resources(text: str, count: int | None, last: int | None) -> None:
    """Intervals may overlap and be in any order; invalid ones are distinguished."""
    assert count == count_of(text)
    if count is not None:
        assert last == last_of(text)


@given(any_trace(("allocated_resources", "metadata", "profile", "job_id")))
def test_any_trace_survives_or_is_counted(trace: Trace) -> None:
    """What is not the same after writing and reading is what was counted, field by field."""
    round_trip(trace, generate_batsim_jobs, parse_batsim_jobs)


def test_losses_are_reported() -> None:
    """What has no column is counted, the lines of the header, too."""
    lost = Losses()
    generate_batsim_jobs(
        parse_swf("; Note: a\n1 0 5 60 4 -1 -1 -1 90 -1 3 7 3 -1 -1 -1 -1 -1\n; b\n"), lost
    )
    assert {
        ("user", "no column for it"): 1,
        ("group", "no column for it"): 1,
        ("header", "the format cannot hold it"): 1,
        ("comments", "the format cannot hold it"): 1,
        ("status", "no state for it"): 1,
        ("requested_processors", "unknown: the allocated ones written"): 1,
    } == lost.counts


@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "LCG-2005-1", "SDSC-DS-2004-2.1-cln"])
def test_real_traces_survive_but_for_what_is_counted(
    read_trace: Callable[[str], Trace], name: str
) -> None:
    """Real traces come back but for the columns that are not there."""
    round_trip(read_trace(name), generate_batsim_jobs, parse_batsim_jobs)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.filterwarnings("ignore")  # those of evalys
def test_evalys_reads_a_run(kth: Trace, tmp_path: Path) -> None:
    """Evalys finds every job of a run of KTH where we say, the same utilization, and draws it."""
    if importlib.util.find_spec("evalys") is None:
        pytest.skip("evalys is not installed; it is in the extra dev")
    import matplotlib

    matplotlib.use("Agg")
    from evalys.jobset import JobSet
    from hpcrowd.scenarios import replay
    from matplotlib import pyplot

    jobs = Trace(kth.header, {name: values[:3000] for name, values in kth.columns.items()})
    run = replay(jobs, scheduler="easy")
    write_trace(run.to_trace(), tmp_path / "out_jobs.csv")
    read = JobSet.from_csv(tmp_path / "out_jobs.csv")
    assert (0, 99) == (read.res_bounds.inf, read.res_bounds.sup)
    frame = read.df.set_index(read.df.jobID.astype(int)).loc[run.jobs.number]
    assert run.jobs.start.tolist() == frame.starting_time.tolist()
    assert run.jobs.end.tolist() == frame.finish_time.tolist()
    assert run.jobs.processors.tolist() == [len(one) for one in frame.allocated_resources]
    utilization = read.mean_utilisation() / 100  # of 100 processors
    assert run.metrics["utilization"] == pytest.approx(utilization, abs=1e-6)
    free = read.free_intervals()  # fails where a job takes what is not free
    assert 0 <= free.free_itvs.map(len).min()
    few = JobSet(
        read.df[read.df.starting_time < 1_200_000].rename(columns={"jobID": "job_id"}),
        resource_bounds=(0, 99),
    )
    few.plot(with_details=True)
    pyplot.savefig(tmp_path / "all.png")
    pyplot.close("all")
    assert (tmp_path / "all.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "value"),
    [
        ("1.500000,2", "soon,2", 3, "submission_time", "soon"),
        ("1.500000,2", "nan,2", 3, None, None),
        ("1.500000,2", "1e400,2", 3, "submission_time", "1e400"),
        (",3-4,", ",3-4x,", 3, "allocated_resources", "3-4x"),
        (",3-4,", ",4-3,", 3, "allocated_resources", "4-3"),
        (",400,", ",4,0,0,", 4, None, None),
        (",big,", ",b\0g,", 4, None, None),
        (' c"', " c", 3, None, ""),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(
    old: str, new: str, line: int, field: str | None, value: str | None
) -> None:
    """A malformed line is a ParseError with line, field and value."""
    assert old in JOBS
    if "nan" in new:
        assert -1 == parse_batsim_jobs(JOBS.replace(old, new))["submit"][1]
        return
    with pytest.raises(ParseError) as caught:
        parse_batsim_jobs(JOBS.replace(old, new), source="a.csv")
    error = caught.value
    assert ("a.csv", line, field) == (error.path, error.line, error.field)
    if value is not None:
        assert value == error.value


@pytest.mark.parametrize("text", ["", "\n", "job_id\n1\n", "job_id,submission_time\n", "a,b\n1,2"])
def test_no_jobs(text: str) -> None:
    """What holds no job, or is something else, is reported."""
    with pytest.raises(TraceError):
        parse_batsim_jobs(text)


@given(damaged(JOBS.encode()))
def test_damaged_files_give_one_line(data: bytes) -> None:
    """Whatever bytes are changed, there is a trace or one line that says what is wrong."""
    told_in_one_line(parse_batsim_jobs, data)


def test_sizes_are_those_that_jobs_hold() -> None:
    """A fraction of a processor is a whole one where a job is placed, and is counted."""
    lost = Losses()
    trace = parse_swf("1 0 5 60 3.5 -1 -1 4 90 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    back = parse_batsim_jobs(generate_batsim_jobs(trace, lost))
    assert np.array_equal([4], back["allocated_processors"])
    reason = "not those that it is placed on"
    assert {("allocated_processors", reason): 1} == lost.counts
