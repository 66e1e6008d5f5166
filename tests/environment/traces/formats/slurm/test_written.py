"""A trace written as Slurm's accounting reads back, but for what is counted as lost."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    Trace,
    generate_sacct,
    jobs_from_trace,
    parse_sacct,
    parse_swf,
    read_sacct,
    write_sacct,
)
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.formats.slurm.table import COLUMNS
from hpcrowd.environment.traces.trace import FIELDS, smallest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import ODD, UTC, job, read, table

STOCKHOLM = FormatOptions(zone="Europe/Stockholm")
ZONES = (None, "Europe/Stockholm", "America/New_York", "Asia/Kathmandu")

#: A job that Slurm's accounting holds as it is.
HELD = {
    "submit": 0, "wait": 5, "run": 60, "allocated_processors": 4, "average_cpu": 12.5,
    "memory": 2048, "requested_processors": 3, "requested_time": 120, "requested_memory": 512,
    "status": 1, "user": 7, "group": 3, "executable": 9, "queue": 2, "partition": 1,
}  # fmt: skip


def rows(trace: Trace, options: FormatOptions | None = None) -> list[dict[str, str]]:
    """What is written, row by row."""
    text = generate_sacct(trace, options=options).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="|", quoting=csv.QUOTE_NONE))


def lost(trace: Trace, options: FormatOptions | None = None) -> dict[str, int]:
    """Jobs that are counted as lost, by field."""
    losses = Losses()
    generate_sacct(trace, losses, options)
    found: Counter[str] = Counter()
    for (field, _), count in losses.counts.items():
        found[field] += count
    return dict(found)


def one_row(make_trace: Callable[..., Trace], **fields: Any) -> dict[str, str]:
    """The row of a job that is as :data:`HELD` but for some fields."""
    return rows(make_trace(HELD | fields))[0]


def one_lost(make_trace: Callable[..., Trace], **fields: Any) -> dict[str, int]:
    """What is lost of a job that is as :data:`HELD` but for some fields."""
    return lost(make_trace(HELD | fields))


# -- what is written


def test_columns_and_values(make_trace: Callable[..., Trace]) -> None:
    """A job is a row with all columns, and a row of a step that gives its memory."""
    trace = make_trace(HELD, header="; UnixStartTime: 1706702400")
    trace.names["user"] = {7: "ada"}
    first, step = rows(trace)
    assert list(COLUMNS) == list(first)
    assert {
        "JobID": "1", "User": "ada", "Account": "3", "JobName": "9", "Partition": "2", "QOS": "",
        "Cluster": "1", "Submit": "2024-01-31T12:00:00", "Start": "2024-01-31T12:00:05",
        "End": "2024-01-31T12:01:05", "ElapsedRaw": "60", "State": "COMPLETED", "AllocCPUS": "4",
        "ReqCPUS": "3", "NNodes": "", "TimelimitRaw": "2", "ReqMem": "512Kc", "MaxRSS": "",
        "TotalCPU": "00:00:50",
    } == first  # fmt: skip
    assert ("1.batch", "batch", "2048K") == (step["JobID"], step["JobName"], step["MaxRSS"])


def test_time_zone(make_trace: Callable[..., Trace]) -> None:
    """Times are local ones of the zone that is asked for, else UTC, whatever the header says."""
    header = "; UnixStartTime: 1706702400\n; TimeZoneString: Asia/Tokyo"
    trace = make_trace(HELD, header=header)
    assert "2024-01-31T13:00:00" == rows(trace, STOCKHOLM)[0]["Submit"]
    assert "2024-01-31T12:00:00" == rows(trace)[0]["Submit"]


def test_hour_shown_twice_has_its_offset(make_trace: Callable[..., Trace]) -> None:
    """A time that clocks show twice says which it is; so nothing is lost or repaired."""
    start = 1729987200  # 27 October 2024, 02:00 in Stockholm, for the first time
    jobs = [HELD | {"submit": hour * 1800} for hour in range(6)]
    trace = make_trace(*jobs, header=f"; UnixStartTime: {start}")
    submit = [row["Submit"] for row in rows(trace, STOCKHOLM) if row["User"]]
    assert [
        "2024-10-27T02:00:00+0200", "2024-10-27T02:30:00+0200", "2024-10-27T02:00:00+0100",
        "2024-10-27T02:30:00+0100", "2024-10-27T03:00:00", "2024-10-27T03:30:00",
    ] == submit  # fmt: skip
    again = parse_sacct(generate_sacct(trace, options=STOCKHOLM), options=STOCKHOLM)
    assert {} == again.repaired
    assert trace["submit"].tolist() == again["submit"].tolist()


def test_without_a_beginning_times_are_since_1970(make_trace: Callable[..., Trace]) -> None:
    """A trace that does not say when it began begins with 1970."""
    assert "1970-01-01T00:00:00" == one_row(make_trace)["Submit"]
    assert {} == one_lost(make_trace)


@pytest.mark.parametrize(
    ("status", "state"),
    [(1, "COMPLETED"), (0, "FAILED"), (5, "CANCELLED"), (4, "FAILED"), (-1, "COMPLETED")],
)
def test_states(make_trace: Callable[..., Trace], status: int, state: str) -> None:
    """A status has its state, others the nearest."""
    assert state == one_row(make_trace, status=status)["State"]


def test_job_that_never_started(make_trace: Callable[..., Trace]) -> None:
    """It has no start, and its end is that of its wait."""
    row = one_row(make_trace, run=-1, status=5)
    assert ("Unknown", "1970-01-01T00:00:05", "0") == (row["Start"], row["End"], row["ElapsedRaw"])


@pytest.mark.parametrize(
    ("average", "text"),
    [(12.5, "00:00:50"), (0.125, "00:00.500"), (900, "01:00:00"), (21600.25, "1-00:00:01"),
     (-1, "")],
)  # fmt: skip
def test_processor_time(make_trace: Callable[..., Trace], average: float, text: str) -> None:
    """It is that of the whole job."""
    assert text == one_row(make_trace, average_cpu=average)["TotalCPU"]


def test_numbers_of_jobs(make_trace: Callable[..., Trace]) -> None:
    """Jobs keep the number that Slurm gave them, else that of the trace, if all differ."""
    trace = make_trace(HELD | {"number": 17}, HELD | {"number": 4, "submit": 1})
    ids = [row["JobID"] for row in rows(trace) if row["User"]]
    assert ["17", "4"] == ids
    twice = make_trace(HELD | {"number": 17}, HELD | {"number": 17})
    assert ["1", "2"] == [row["JobID"] for row in rows(twice) if row["User"]]
    again = read({"JobID": "9_3"}, {"JobID": "12", "Submit": "2024-01-31T12:00:01"})
    assert ["9_3", "12"] == [row["JobID"] for row in rows(again)]


def test_memory_of_the_rest_of_an_array() -> None:
    """Also what never is, a step of tasks that did not start, comes back as it was."""
    row = {"JobID": "9_[1,3,...]", "State": "CANCELLED", "MaxRSS": "5K"}
    trace = read(row)
    assert [5] == trace["memory"].tolist()
    assert "9_[1,3,...].batch" == rows(trace, UTC)[1]["JobID"]
    assert {} == lost(trace, UTC)


def test_queue_is_written_where_it_is_read(make_trace: Callable[..., Trace]) -> None:
    """If the queue is QOS, that column is written."""
    row = rows(make_trace(HELD), FormatOptions(queue="qos"))[0]
    assert ("2", "1", "") == (row["QOS"], row["Partition"], row["Cluster"])
    assert {} == lost(make_trace(HELD), FormatOptions(queue="qos"))


def test_file(tmp_path: Any, make_trace: Callable[..., Trace]) -> None:
    """A file is written and read."""
    path = tmp_path / "jobs.sacct.gz"
    write_sacct(make_trace(HELD), path)
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert HELD == {name: job(read_sacct(path))[name] for name in HELD}


def test_no_jobs() -> None:
    """A trace without jobs is a header."""
    empty = Trace(Header(), {name: np.zeros(0) for name in FIELDS})
    assert "|".join(COLUMNS) + "\n" == generate_sacct(empty, Losses()).decode()


# -- what is lost


def test_nothing_is_lost_of_what_slurm_tells(make_trace: Callable[..., Trace]) -> None:
    """A job of which Slurm reports everything reads back as it was."""
    trace = make_trace(HELD)
    assert {} == lost(trace)
    assert table(trace) == table(parse_sacct(generate_sacct(trace)))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"number": 8}, {"number": 1}),
        ({"submit": 0.4}, {"submit": 1}),
        ({"submit": -1}, {"submit": 1 - 1, "wait": 1}),
        ({"submit": 2**40}, {"submit": 1, "wait": 1}),
        ({"wait": 5.5}, {"wait": 1}),
        ({"wait": -1}, {}),
        ({"run": 0.5}, {"run": 1}),
        ({"run": -1}, {}),
        ({"run": 0, "wait": -1}, {}),
        ({"run": 0, "wait": -1, "status": 0}, {"run": 1}),
        ({"run": 0, "allocated_processors": 0, "status": 5}, {"run": 1, "average_cpu": 1}),
        ({"allocated_processors": 2.5, "average_cpu": -1}, {"allocated_processors": 1}),
        ({"allocated_processors": -1}, {"average_cpu": 1}),
        ({"average_cpu": 1 / 3}, {"average_cpu": 1}),
        ({"memory": 0}, {}),
        ({"memory": 0.5}, {}),
        ({"requested_time": 61}, {"requested_time": 1}),
        ({"requested_time": 0}, {}),
        ({"requested_memory": 0}, {"requested_memory": 1}),
        ({"requested_memory": 1000.25}, {}),
        *(({"status": status}, {"status": 1}) for status in (-1, 2, 3, 4)),
        *(({name: -1}, {}) for name in NAMED),
        ({"preceding": 1}, {"preceding": 1}),
        ({"think_time": 10}, {"think_time": 1}),
    ],
)
def test_loss_of_a_field(
    make_trace: Callable[..., Trace], fields: dict[str, float], expected: dict[str, int]
) -> None:
    """Each value that cannot be held is counted for its field, and no other."""
    assert {name: count for name, count in expected.items() if count} == one_lost(
        make_trace, **fields
    )


@pytest.mark.parametrize("name", ["a|b", "two\nlines", "None", "-", "a\rb", "\ud800"])
def test_names_that_no_row_holds(make_trace: Callable[..., Trace], name: str) -> None:
    """A name with a delimiter or a line end, or one that stands for unknown, is counted."""
    trace = make_trace(HELD, HELD | {"user": 8})
    trace.names["user"] = {7: name, 8: "bob"}
    assert {"user": 1} == lost(trace)
    assert 2 == len(parse_sacct(generate_sacct(trace)))


def test_header_and_comments_are_counted_in_lines() -> None:
    """Lines of the header that do not come back are counted, and comments."""
    data = """; Version: 2.2
; Acknowledge: somebody
; UnixStartTime: 1706702400
;
1 0 5 60 4 -1 -1 4 120 -1 1 7 3 -1 -1 -1 -1 -1
; outage
"""
    assert {"header": 1, "comments": 1} == lost(parse_swf(data))


def test_other_columns_are_counted(make_trace: Callable[..., Trace]) -> None:
    """Columns of other formats are counted by name, and numbers of jobs that Slurm never gives."""
    trace = make_trace(HELD, HELD | {"submit": 1})
    trace.extra["project"] = np.array(["", "x"], object)
    trace.extra["job_id"] = np.array(["77.server", "78.server"], object)
    assert {"project": 1, "job_id": 2} == lost(trace)


def test_order_of_submissions(make_trace: Callable[..., Trace]) -> None:
    """Jobs that are not in the order of submissions are put there; their numbers change."""
    trace = make_trace(HELD | {"submit": 9}, HELD, HELD | {"submit": 9, "run": 8})
    assert {"number": 2} == lost(trace)
    again = parse_sacct(generate_sacct(trace))
    assert (["2", "1", "3"], [0, 9, 9]) == (
        again.extra["job_id"].tolist(), again["submit"].tolist()
    )  # fmt: skip


# -- round trips


@st.composite
def traces(draw: Any) -> Trace:
    """Any small trace: whole and broken numbers, known or not, in order or not."""
    count = draw(st.integers(1, 6))
    seconds = st.one_of(
        st.just(-1), st.integers(0, 10**6), st.sampled_from([0, 60, 0.25, 1e9, 2**40, 2**53])
    )
    few = st.one_of(st.just(-1), st.integers(0, 64), st.sampled_from([0.5, 2**31, 2**53]))
    kinds = dict.fromkeys(FIELDS, few) | dict.fromkeys(
        ("submit", "wait", "run", "average_cpu", "requested_time", "think_time"), seconds
    )
    kinds["status"] = st.sampled_from([1, 0, 5, -1, 2, 3, 4])
    kinds |= {name: st.integers(-1, 9) for name in NAMED}
    columns = {
        name: smallest(np.array(draw(st.lists(kind, min_size=count, max_size=count)), float))
        for name, kind in kinds.items()
    }
    start = draw(st.sampled_from(["", "; UnixStartTime: 1729980000", "; UnixStartTime: 7e9"]))
    trace = Trace(Header([start.encode()]), columns, source="made")
    for name in NAMED:
        if draw(st.booleans()):
            words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
            trace.names[name] = dict(enumerate(draw(st.lists(words, min_size=10, max_size=10))))
    return trace


def differences(before: Trace, after: Trace, order: list[int]) -> dict[str, int]:
    """How many jobs differ, by field; submissions as moments, named fields by name."""
    found = {}
    for name in FIELDS:
        one, other = before[name][order].astype(float), after[name].astype(float)
        if name == "submit":
            first, second = (
                trace.header.integer("UnixStartTime") or 0 for trace in (before, after)
            )
            one = np.where(one == -1, -1, one + first)
            other = np.where(other == -1, -1, other + second)
        if name in NAMED:
            words = worded(before, name)
            one = np.array([words[place] for place in order], object)
            other = np.array(worded(after, name), object)
        if count := int((one != other).sum()):
            found[name] = count
    return found


@given(trace=traces(), zone=st.sampled_from(ZONES))
def test_losses_are_exact(trace: Trace, zone: str | None) -> None:
    """Each field differs after a round trip in as many jobs as are counted."""
    options = FormatOptions(zone=zone)
    written = [row["JobID"] for row in rows(trace, options) if "." not in row["JobID"]]
    again = parse_sacct(generate_sacct(trace, options=options), options=options)
    assert written == again.extra["job_id"].tolist()
    numbers = [str(int(number)) for number in trace["number"]]
    own = len(set(numbers)) == len(trace) and (trace["number"] > 0).all()
    own = own and (trace["number"] == np.floor(trace["number"])).all()
    places = numbers if own else [str(place) for place in range(1, len(trace) + 1)]
    order = [places.index(name) for name in written]
    counted = {name: count for name, count in lost(trace, options).items() if name in FIELDS}
    assert differences(trace, again, order) == counted


@given(trace=traces(), zone=st.sampled_from(ZONES))
def test_a_second_round_trip_loses_nothing(trace: Trace, zone: str | None) -> None:
    """What was read from accounting is written and read without loss."""
    options = FormatOptions(zone=zone)
    first = parse_sacct(generate_sacct(trace, options=options), options=options)
    assert {} == lost(first, options)
    again = parse_sacct(generate_sacct(first, options=options), options=options)
    assert table(first) == table(again)
    assert generate_sacct(first, options=options) == generate_sacct(again, options=options)


def test_all_oddities_read_back() -> None:
    """The trace of the text with every oddity is held by what is written of it."""
    options = FormatOptions(zone="Europe/Paris")
    trace = parse_sacct(ODD, "odd.txt", options)
    assert {"restarts": 1, "lost_work": 1} == lost(trace, options)
    again = parse_sacct(generate_sacct(trace, options=options), options=options)
    assert table(trace) == table(again)
    assert trace.names == again.names
    assert trace.extra["job_id"].tolist() == again.extra["job_id"].tolist()
    assert trace.header.lines == again.header.lines


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("KTH-SP2", {"number": 28476}),
        ("NASA-iPSC", {"status": 18239}),
        ("SDSC-DS", {}),
        ("LLNL-Thunder", {}),
        ("DAS2-fs1", {}),
    ],
)
def test_real_traces(
    log: str, expected: dict[str, int], read_trace: Callable[[str], Trace]
) -> None:
    """Real logs read back but for what is counted."""
    trace = read_trace(log)
    losses = Losses()
    text = generate_sacct(trace, losses, STOCKHOLM)
    again = parse_sacct(text, options=STOCKHOLM)
    order = np.argsort(np.where(trace["submit"] < 0, -1, trace["submit"]), kind="stable")
    counted = {name: count for name, count in lost(trace, STOCKHOLM).items() if name in FIELDS}
    assert counted == differences(trace, again, order.tolist())
    assert expected.items() <= counted.items(), counted
    assert {} == again.repaired


@pytest.mark.traces
def test_jobs_to_simulate_are_the_same(kth: Trace) -> None:
    """A log that was written as accounting gives the same jobs, from its first submission on."""
    again = parse_sacct(generate_sacct(kth), options=FormatOptions(zone="UTC"))
    one, other = jobs_from_trace(kth).jobs, jobs_from_trace(again).jobs
    first = int(kth["submit"][0])
    assert np.array_equal(one.recorded_submit - first, other.recorded_submit)
    assert np.array_equal(one.recorded_start - first, other.recorded_start)
    for name in ("run_time", "requested_time", "processors", "user"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
