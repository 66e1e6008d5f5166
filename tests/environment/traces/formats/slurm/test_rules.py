"""Each rule by which rows of Slurm's accounting become fields of a trace."""

from __future__ import annotations

import pytest
from hpcrowd.environment import parse_sacct

from tests.support.sacct import NOON, one, read, text, told

# -- times


def test_wait_is_from_submission_to_start() -> None:
    """Field 3 is Start - Submit."""
    assert 300 == one()["wait"]


def test_run_is_elapsed_raw() -> None:
    """Field 4 is ElapsedRaw, whatever start and end say."""
    assert 500 == one(ElapsedRaw="500")["run"]


@pytest.mark.parametrize(
    ("elapsed", "run"), [("00:10:00", 600), ("1-00:00:01", 86401), ("05:00", 300)]
)
def test_run_is_elapsed_without_elapsed_raw(elapsed: str, run: int) -> None:
    """Without ElapsedRaw it is Elapsed."""
    assert run == told(ElapsedRaw="no", Elapsed=elapsed)["run"]


def test_run_is_end_less_start() -> None:
    """Without both, and where ElapsedRaw is empty, it is End - Start."""
    assert 600 == told(ElapsedRaw="no")["run"]
    assert 600 == told(ElapsedRaw="")["run"]


def test_run_longer_than_any() -> None:
    """A run time is taken as recorded, also when it ends after the last year of a calendar."""
    assert 2**53 == one(ElapsedRaw=str(2**53), End="")["run"]


def test_start_is_end_less_run() -> None:
    """Without Start, the wait follows from End and the run time."""
    assert (300, 600) == (told(Start="no")["wait"], told(Start="no")["run"])
    assert 300 == told(Start="Unknown")["wait"]


def test_start_alone() -> None:
    """Without End nothing is missing."""
    assert (300, 600) == (told(End="no")["wait"], told(End="no")["run"])


@pytest.mark.parametrize("word", ["Unknown", "None", "N/A", "", "UNKNOWN"])
def test_time_that_is_not_known(word: str) -> None:
    """A job without a submission has neither that nor a wait; it is kept."""
    row = one(Submit=word)
    assert (-1, -1, 600) == (row["submit"], row["wait"], row["run"])


def test_job_without_submission_stands_first() -> None:
    """The origin is the first submission that is known."""
    trace = read({"JobID": "1"}, {"JobID": "2", "Submit": "Unknown"})
    assert ["2", "1"] == trace.extra["job_id"].tolist()
    assert [-1, 0] == trace["submit"].tolist()


def test_unix_times() -> None:
    """Times of ``SLURM_TIME_FORMAT=%s`` have no zone; 0 is unknown."""
    unix = {"Submit": "1706702400", "Start": "1706702700", "End": "0"}
    trace = read(unix, zone=None)
    assert {} == trace.repaired
    assert 1706702400 == trace.header.integer("UnixStartTime")
    assert 300 == trace["wait"][0]


@pytest.mark.parametrize("offset", ["+0100", "+01:00"])
def test_times_with_an_offset(offset: str) -> None:
    """An offset says which moment it is, whatever the zone of the machine."""
    trace = read({"Submit": NOON + offset, "Start": "2024-01-31T11:05:00Z"}, zone="Asia/Tokyo")
    assert 1706698800 == trace.header.integer("UnixStartTime")  # 11:00 UTC
    assert 300 == trace["wait"][0]


def test_offset_west_of_greenwich() -> None:
    """What is west of Greenwich is behind."""
    trace = read({"Submit": NOON + "-0330"})
    assert 1706702400 + 12600 == trace.header.integer("UnixStartTime")


def test_local_times_are_those_of_the_zone() -> None:
    """A time without an offset is a local time of the zone that is given."""
    trace = read({}, zone="Europe/Paris")
    assert 1706698800 == trace.header.integer("UnixStartTime")
    assert "Europe/Paris" == trace.header.get("TimeZoneString")
    assert {} == trace.repaired


def test_no_zone_is_reported() -> None:
    """Without a zone local times are taken as UTC, which is counted, and noted in the header."""
    unix = {"Submit": "1706702400", "Start": "1706702700", "End": "Unknown"}
    trace = read({}, {"JobID": "2"} | unix, zone=None)
    assert {"no time zone given: times taken as UTC": 1} == trace.repaired
    assert 1706702400 == trace.header.integer("UnixStartTime")
    assert trace.header.get("TimeZoneString") is None
    assert b"; Note: the log tells no time zone; times were taken as UTC" in trace.header.lines


#: The night of 27 October 2024 in Paris: 02:00 to 03:00 is shown twice.
NIGHT = "2024-10-27T"


def night(submit: str, start: str, end: str, elapsed: str) -> tuple[float, float, list[str]]:
    """Wait and run of a job of that night, and what was done to it."""
    row = {"Submit": NIGHT + submit, "Start": NIGHT + start, "End": NIGHT + end,
           "ElapsedRaw": elapsed}  # fmt: skip
    trace = read(row, zone="Europe/Paris")
    return trace["wait"][0], trace["run"][0], list(trace.repaired)


FIRST = "ambiguous local time (clocks put back): the first taken"
SECOND = "ambiguous local time (clocks put back): the second taken, which fits the other times"


def test_hour_shown_twice_is_the_first() -> None:
    """A time that clocks show twice is the first, if nothing speaks against it; it is counted."""
    assert (600, 600, [FIRST]) == night("02:10:00", "02:20:00", "02:30:00", "600")


def test_hour_shown_twice_is_the_second_if_it_would_start_before() -> None:
    """A start before the submission is the second of its two moments."""
    assert (1200, 600, [SECOND]) == night("02:50:00", "02:10:00", "03:10:00", "600")


def test_hour_shown_twice_is_the_second_if_it_would_end_before() -> None:
    """An end before the start is the second of its two moments."""
    assert (3000, 1800, [SECOND]) == night("02:00:00", "02:50:00", "02:20:00", "")


def test_hour_shown_twice_is_the_one_that_fits_the_run_time() -> None:
    """A start is the second of its two moments if only then the job ran as long as it did."""
    assert (600 + 3600, 2400, [SECOND]) == night("02:10:00", "02:20:00", "03:00:00", "2400")
    assert (600, 6000, [FIRST]) == night("02:10:00", "02:20:00", "03:00:00", "6000")


def test_unix_times_know_of_no_hour_shown_twice() -> None:
    """A time that says which moment it is needs no repair."""
    trace = read({"Submit": "1729989000", "Start": "1729992600", "End": ""}, zone="Europe/Paris")
    assert ({}, 3600) == (trace.repaired, trace["wait"][0])


def test_hour_never_shown() -> None:
    """A time that clocks are put forward over is the moment when they are, and counted."""
    row = {"Submit": "2024-03-31T01:59:00", "Start": "2024-03-31T02:30:00", "End": ""}
    trace = read(row, zone="Europe/Paris")
    assert 60 == trace["wait"][0]
    reason = "nonexistent local time (clocks put forward): moved to the end of the gap"
    assert {reason: 1} == trace.repaired


def test_started_before_it_was_submitted() -> None:
    """A negative wait is none, and counted."""
    trace = read({"Submit": "2024-01-31T12:06:00"})
    assert 0 == trace["wait"][0]
    assert {"started before it was submitted: wait taken as 0": 1} == trace.repaired


def test_ended_before_it_started() -> None:
    """A negative run time is unknown, and counted."""
    trace = read({"End": "2024-01-31T12:04:00", "ElapsedRaw": ""})
    assert -1 == trace["run"][0]
    assert {"ended before it started: run time unknown": 1} == trace.repaired


# -- jobs that never started


@pytest.mark.parametrize("start", ["None", "Unknown"])
@pytest.mark.parametrize("elapsed", ["0", ""])
def test_cancelled_before_it_started(start: str, elapsed: str) -> None:
    """It waited until it was cancelled, and has no run time."""
    row = one(State="CANCELLED by 7", Start=start, ElapsedRaw=elapsed, AllocCPUS="0", TotalCPU="")
    assert (900, -1, 0, -1, 5) == (
        row["wait"], row["run"], row["allocated_processors"], row["average_cpu"], row["status"]
    )  # fmt: skip


def test_cancelled_before_it_started_with_a_start() -> None:
    """A start without run time and processors is the time of the cancellation."""
    row = one(State="CANCELLED", Start="2024-01-31T12:15:00", ElapsedRaw="0", AllocCPUS="0")
    assert (900, -1) == (row["wait"], row["run"])


def test_cancelled_at_once_after_it_started() -> None:
    """With processors it did start: a run time of 0 is one."""
    row = one(State="CANCELLED", End="2024-01-31T12:05:00", ElapsedRaw="0")
    assert (300, 0) == (row["wait"], row["run"])


def test_completed_at_once() -> None:
    """A job that completed did start, even if nothing else says so."""
    row = one(Start="Unknown", End="Unknown", ElapsedRaw="0", AllocCPUS="0")
    assert (-1, 0, 1) == (row["wait"], row["run"], row["status"])


# -- processors


@pytest.mark.parametrize(
    ("column", "word"),
    [("AllocCPUS", "16"), ("NCPUS", "16"), ("AllocTRES", "billing=9,cpu=16,mem=4G,node=2")],
)
def test_allocated_processors(column: str, word: str) -> None:
    """Field 5 is AllocCPUS, else NCPUS, else those of AllocTRES."""
    assert 16 == told(**{"AllocCPUS": "no", column: word})["allocated_processors"]


def test_allocated_processors_of_a_job_that_has_none() -> None:
    """Trackable resources without processors give nothing."""
    assert -1 == told(AllocCPUS="no", AllocTRES="")["allocated_processors"]
    assert -1 == told(AllocCPUS="no", AllocTRES="gres/gpu=1")["allocated_processors"]


def test_first_of_columns_that_say_the_same() -> None:
    """AllocCPUS comes before AllocTRES, wherever they stand."""
    assert 4 == told(AllocTRES="cpu=9", AllocCPUS="4")["allocated_processors"]


@pytest.mark.parametrize(("column", "word"), [("ReqCPUS", "8"), ("ReqTRES", "cpu=8,node=1")])
def test_requested_processors(column: str, word: str) -> None:
    """Field 8 is ReqCPUS, else those of ReqTRES."""
    assert 8 == told(**{"ReqCPUS": "no", column: word})["requested_processors"]


@pytest.mark.parametrize(("word", "count"), [("1K", 1024), ("2.50K", 2560), ("1M", 2**20)])
def test_large_counts(word: str, count: int) -> None:
    """sacct shortens large counts by 1024."""
    assert count == one(AllocCPUS=word)["allocated_processors"]


# -- processor time and memory that was used


@pytest.mark.parametrize(
    ("word", "seconds"),
    [("00:40", 10), ("00:40.500", 10.125), ("01:00:40", 910), ("2-00:00:00", 43200), ("", -1)],
)
def test_average_cpu_time(word: str, seconds: float) -> None:
    """Field 6 is TotalCPU / AllocCPUS."""
    assert seconds == one(TotalCPU=word, AllocCPUS="4")["average_cpu"]


def test_average_cpu_time_to_a_thousandth() -> None:
    """It is given to a thousandth of a second, as TotalCPU is."""
    assert 3.333 == one(TotalCPU="00:10", AllocCPUS="3")["average_cpu"]
    assert -1 == one(TotalCPU="00:10", AllocCPUS="0")["average_cpu"]


def test_memory_is_the_largest_of_the_steps() -> None:
    """Field 7 is the largest MaxRSS of the job and its steps, kB."""
    steps = {"1.batch": "100K", "1.extern": "", "1.0": "3M", "1.interactive": "2048K"}
    trace = read({}, *({"JobID": name, "MaxRSS": size} for name, size in steps.items()))
    assert [3072] == trace["memory"].tolist()


@pytest.mark.parametrize(
    ("word", "kilobytes"),
    [("20480K", 20480), ("1.5G", 1572864), ("2T", 2**31), ("2048", 2), ("512", 0.5), ("0", 0)],
)
def test_units_of_used_memory(word: str, kilobytes: float) -> None:
    """Sizes have a unit, or are bytes."""
    assert kilobytes == read({}, {"JobID": "1.0", "MaxRSS": word})["memory"][0]


def test_average_memory_without_the_largest() -> None:
    """A step that does not give MaxRSS gives AveRSS."""
    data = text(
        {"AveRSS": ""},
        {"JobID": "1.0", "MaxRSS": "", "AveRSS": "7K"},
        {"JobID": "1.1", "MaxRSS": "5K", "AveRSS": "9K"},
    )
    assert 7 == parse_sacct(data)["memory"][0]


def test_no_steps_no_memory() -> None:
    """Without rows of steps (``-X``) the memory is unknown."""
    assert -1 == one()["memory"]


def test_steps_belong_to_the_run_before_them() -> None:
    """Of a job that ran twice the memory is that of the last run."""
    first = {"State": "NODE_FAIL"}
    again = {"Submit": "2024-01-31T13:00:00", "Start": "2024-01-31T13:01:00"}
    trace = read(
        first, {"JobID": "1.batch", "MaxRSS": "900K"}, again, {"JobID": "1.batch", "MaxRSS": "100K"}
    )
    assert [100] == trace["memory"].tolist()


def test_steps_without_a_cluster() -> None:
    """A step need not say of which cluster its job is, if all are of one."""
    assert [7] == read({}, {"JobID": "1.0", "MaxRSS": "7K", "Cluster": ""})["memory"].tolist()


def test_steps_before_their_job() -> None:
    """A step that stands before its job belongs to it, too."""
    assert [7] == read({"JobID": "1.0", "MaxRSS": "7K"}, {})["memory"].tolist()


def test_steps_alone() -> None:
    """Steps without a row of their job are dropped; the jobs that they are of are counted."""
    trace = read({}, {"JobID": "9.0"}, {"JobID": "9.batch"}, {"JobID": "11_3.0"})
    assert 1 == len(trace)
    assert {"steps without a row of their job": 2} == trace.dropped


# -- what was asked for


@pytest.mark.parametrize(
    ("word", "seconds"), [("90", 5400), ("0", 0), ("Partition_Limit", -1), ("UNLIMITED", -1),
                          ("", -1), ("INVALID", -1)]
)  # fmt: skip
def test_requested_time_in_minutes(word: str, seconds: int) -> None:
    """Field 9 is TimelimitRaw, in minutes; no limit is none."""
    assert seconds == one(TimelimitRaw=word)["requested_time"]


@pytest.mark.parametrize(
    ("word", "seconds"), [("01:30:00", 5400), ("7-00:00:00", 604800), ("UNLIMITED", -1),
                          ("Partition_Limit", -1), ("", -1)]
)  # fmt: skip
def test_requested_time_as_a_duration(word: str, seconds: int) -> None:
    """Without TimelimitRaw it is Timelimit."""
    assert seconds == told(TimelimitRaw="no", Timelimit=word)["requested_time"]


@pytest.mark.parametrize(
    ("word", "kilobytes"),
    [
        ("4Gc", 4 * 2**20),  # of a CPU
        ("4Gn", 2**20),  # of each of two nodes, by eight CPUs
        ("4G", 2**19),  # of the job
        ("4000", 512000),  # MB
        ("4000M", 512000),
        ("1.5T", 201326592),
        ("8K", 1),
        ("0", -1),  # all there is
        ("0n", -1),
        ("0c", -1),
        ("", -1),
    ],
)
def test_requested_memory(word: str, kilobytes: float) -> None:
    """Field 10 is ReqMem for each requested processor, kB."""
    row = one(ReqMem=word, ReqCPUS="8", AllocCPUS="16", NNodes="2")
    assert kilobytes == row["requested_memory"]


def test_requested_memory_by_allocated_processors() -> None:
    """It is shared by the allocated processors where none were requested; rounded to whole kB."""
    assert 512 == told(ReqMem="8M", ReqCPUS="no", AllocCPUS="16")["requested_memory"]
    assert 341 == told(ReqMem="1M", ReqCPUS="3")["requested_memory"]


@pytest.mark.parametrize("column", ["NNodes", "AllocNodes", "ReqNodes"])
def test_nodes(column: str) -> None:
    """Nodes are given by any of three columns; without them memory per node is unknown."""
    assert 2 * 2**20 == told(**{"NNodes": "no", column: "2", "ReqMem": "1Gn"})["requested_memory"]
    assert -1 == told(NNodes="no", ReqMem="1Gn")["requested_memory"]
