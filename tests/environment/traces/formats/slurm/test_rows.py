"""Which rows of Slurm's accounting are jobs, what state they are in, and whose they are."""

from __future__ import annotations

import pytest
from hpcrowd.environment import TraceError, parse_sacct

from tests.support.sacct import JOB, NOON, UTC, job, one, read, text, told, without

# -- states


@pytest.mark.parametrize(
    ("state", "status"),
    [
        *(("COMPLETED", 1), ("CD", 1), ("FAILED", 0), ("F", 0), ("TIMEOUT", 0), ("TO", 0)),
        *(("NODE_FAIL", 0), ("NF", 0), ("OUT_OF_MEMORY", 0), ("OOM", 0), ("BOOT_FAIL", 0)),
        *(("BF", 0), ("DEADLINE", 0), ("DL", 0), ("PREEMPTED", 0), ("PR", 0), ("CANCELLED", 5)),
        *(("CA", 5), ("CANCELLED by 1000", 5), ("CANCELLED+", 5), ("cancelled", 5)),
        ("LAUNCH_FAILED", 0),
    ],
)
def test_states_of_jobs_that_have_ended(state: str, status: int) -> None:
    """Field 11 is 1 for COMPLETED, 5 for CANCELLED, 0 for other ends, in long and short forms."""
    assert status == one(State=state)["status"]


@pytest.mark.parametrize(
    ("state", "name"),
    [
        *(("PENDING", "PENDING"), ("PD", "PENDING"), ("RUNNING", "RUNNING"), ("R", "RUNNING")),
        *(("SUSPENDED", "SUSPENDED"), ("S", "SUSPENDED"), ("REQUEUED", "REQUEUED")),
        *(("RQ", "REQUEUED"), ("RESIZING", "RESIZING"), ("RS", "RESIZING"), ("RV", "REVOKED")),
        *(("CF", "CONFIGURING"), ("CG", "COMPLETING"), ("REQUEUE_HOLD", "REQUEUE_HOLD")),
        *(("STOPPED", "STOPPED"), ("SIGNALING", "SIGNALING"), ("STAGE_OUT", "STAGE_OUT")),
    ],
)
def test_states_of_jobs_that_are_not_over(state: str, name: str) -> None:
    """They are dropped, and counted by state."""
    trace = read({}, {"JobID": "2", "State": state}, {"JobID": "3", "State": state})
    assert 1 == len(trace)
    assert {f"state {name}": 2} == trace.dropped


def test_no_job_has_ended() -> None:
    """A file of jobs that are not over has no trace, and says why."""
    match = r"jobs\.txt: contains no jobs that have ended \(2 state PENDING"
    with pytest.raises(TraceError, match=match):
        read({"State": "PENDING"}, {"JobID": "2", "State": "PENDING"})


def test_only_steps() -> None:
    """Nor has a file of steps alone."""
    with pytest.raises(TraceError, match=r"contains no jobs that have ended \(1 steps without"):
        read({"JobID": "1.0"}, {"JobID": "1.batch"})


def test_state_of_no_job_that_has_ended_is_reported_in_short() -> None:
    """Of many states the most frequent are reported."""
    states = ["PENDING", "RUNNING", "SUSPENDED", "RESIZING", "REVOKED", "STOPPED", "STAGE_OUT"]
    rows = [{"JobID": str(number), "State": state} for number, state in enumerate(states)]
    with pytest.raises(TraceError) as caught:
        read(*rows, {"JobID": "20", "State": "REVOKED"})
    assert "(2 state REVOKED, 1 state PENDING, 1 state RUNNING)" in str(caught.value)


# -- names


def test_user_else_uid() -> None:
    """Field 12 is User, for jobs without one UID."""
    data = text({"UID": "1000"}, {"JobID": "2", "User": "", "UID": "1001"})
    trace = parse_sacct(data)
    assert {1: "ada", 2: "1001"} == trace.names["user"]
    assert [1, 2] == trace["user"].tolist()
    assert 1000 == told(User="no", UID="1000")["user"]


def test_group_is_account_else_group_else_gid() -> None:
    """Field 13 is the first of three columns that says anything in some job."""
    data = without("Account", **{"Group": "staff", "GID": "100"})
    assert {1: "staff"} == parse_sacct(data).names["group"]
    data = without("None", **{"Account": "", "Group": "staff", "GID": "100"})
    assert {1: "staff"} == parse_sacct(data).names["group"]
    assert 100 == told(Account="no", GID="100")["group"]
    rows = {"Group": "staff"}, {"JobID": "2", "Account": "", "Group": "staff"}
    assert [1, -1] == parse_sacct(text(*rows))["group"].tolist()


def test_executable_is_job_name() -> None:
    """Field 14 is JobName; names that are numbers stand for themselves."""
    assert {1: "relax"} == read({}).names["executable"]
    assert 42 == one(JobName="42")["executable"]


def test_queue_is_partition_and_partition_is_cluster() -> None:
    """Fields 15 and 16 are Partition and Cluster, and the header says so."""
    trace = read({})
    assert ({1: "long"}, {1: "hal"}) == (trace.names["queue"], trace.names["partition"])
    assert b"; Note: queue is Slurm's Partition, partition its Cluster" in trace.header.lines
    assert "hal" == trace.header.get("Computer")


def test_queue_is_qos_if_asked_for() -> None:
    """Then field 16 is Partition, and the header says so."""
    trace = read({}, queue="qos")
    assert ({1: "normal"}, {1: "long"}) == (trace.names["queue"], trace.names["partition"])
    assert b"; Note: queue is Slurm's QOS, partition its Partition" in trace.header.lines
    assert trace.header.get("Computer") is None


def test_numbers_of_names_are_given_in_the_order_of_submissions() -> None:
    """The first user is who submitted first, not who is first."""
    trace = read({"Submit": "2024-02-01T00:00:00"}, {"JobID": "2", "User": "bob"})
    assert {1: "bob", 2: "ada"} == trace.names["user"]


def test_fields_without_a_column() -> None:
    """Preceding jobs and think times are not known."""
    assert (-1, -1) == (one()["preceding"], one()["think_time"])


def test_least_columns() -> None:
    """Six columns are enough."""
    data = f"JobIDRaw|Submit|State|End|Elapsed|NCPUS\n7|{NOON}|CD|2024-01-31T13:00:00|30:00|2\n"
    row = job(parse_sacct(data, options=UTC))
    assert (1, 0, 1800, 1800, 2, -1) == tuple(
        row[name] for name in ("number", "submit", "wait", "run", "allocated_processors", "user")
    )


# -- several rows of one number

AGAIN = "requeued after a failure or preemption: last run and first submission kept"
LATER = {"Submit": "2024-01-31T13:00:00", "Start": "2024-01-31T13:10:00", "ElapsedRaw": "60"}


@pytest.mark.parametrize(
    "state",
    [*("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"), "RQ"],
)
def test_requeued_job_is_one(state: str) -> None:
    """After such an end a row of the same number is the same job: last run, first submission."""
    trace = read({"State": state}, LATER)
    assert (1, 4200, 60) == (len(trace), trace["wait"][0], trace["run"][0])
    assert {AGAIN: 1} == trace.repaired
    assert {} == trace.dropped


def test_requeued_twice() -> None:
    """All runs but the last are passed over; the job is counted once."""
    second = {"State": "PREEMPTED", "Submit": "2024-01-31T12:30:00", "Start": "Unknown"}
    trace = read({"State": "PREEMPTED"}, second, LATER)
    assert (1, 4200) == (len(trace), trace["wait"][0])
    assert {AGAIN: 1} == trace.repaired


def test_requeued_and_not_over() -> None:
    """A job whose last run is not over is dropped."""
    trace = read({"JobID": "2"}, {"State": "NODE_FAIL"}, {**LATER, "State": "PENDING"})
    assert ["2"] == trace.extra["job_id"].tolist()
    assert ({}, {"state PENDING": 1}) == (trace.repaired, trace.dropped)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"])
def test_number_that_was_used_again(state: str) -> None:
    """After another end the number was used again: there are two jobs."""
    trace = read({"State": state}, LATER)
    assert [600, 60] == trace["run"].tolist()
    assert {} == trace.repaired


def test_number_that_another_user_has() -> None:
    """Nor is it the same job if the user is another."""
    assert 2 == len(read({"State": "NODE_FAIL"}, {**LATER, "User": "bob"}))


def test_numbers_of_two_clusters() -> None:
    """The same number in another cluster is another job, with steps of its own."""
    other = {"Cluster": "eve"}
    rows = {"State": "NODE_FAIL"}, {"JobID": "1.0", "MaxRSS": "1K"}, other | LATER
    trace = read(*rows, {"JobID": "1.0", "MaxRSS": "2K"} | other)
    assert [1, 2] == trace["memory"].tolist()


def test_raw_numbers_alone() -> None:
    """Without JobID the numbers are those of JobIDRaw."""
    data = without("JobID", **{"JobIDRaw": "77"})
    assert ["77"] == parse_sacct(data).extra["job_id"].tolist()


# -- arrays and heterogeneous jobs


def test_tasks_of_an_array_are_jobs() -> None:
    """Each task is its own job, with its own steps."""
    rows = [{"JobID": f"9_{task}"} for task in (1, 2, 10)]
    trace = read(*rows, {"JobID": "9_2.batch", "MaxRSS": "5K"})
    assert ["9_1", "9_2", "9_10"] == trace.extra["job_id"].tolist()
    assert [-1, 5, -1] == trace["memory"].tolist()


REST = "array tasks that never started, in one row: one of them kept"


@pytest.mark.parametrize(
    ("listed", "tasks"),
    [("[6-10%2]", 5), ("[1]", 1), ("[1,3,7-8]", 4), ("[1-10:3]", 4), ("[0-99,200%10]", 101),
     ("[1,3,5,...]", 3), ("[1,3,5,...", 3)],
)  # fmt: skip
def test_rest_of_an_array(listed: str, tasks: int) -> None:
    """Tasks that were cancelled before they started: one is kept, the others are counted."""
    row = {"JobID": f"9_{listed}", "State": "CANCELLED by 7", "Start": "None", "ElapsedRaw": "0"}
    trace = read(row)
    assert (1, -1) == (len(trace), trace["run"][0])
    assert ({REST: tasks - 1} if tasks > 1 else {}) == trace.dropped
    waiting = read({"JobID": "1"}, {**row, "State": "PENDING"})
    assert {"state PENDING": tasks} == waiting.dropped


PARTS = "heterogeneous job: parts merged into one job, processors added up"


def test_heterogeneous_job() -> None:
    """Its parts are one job: processors and processor time are sums, the first part names who."""
    rows = [
        {"JobID": "9+1", "User": "bob", "Partition": "gpu", "AllocCPUS": "6", "ReqCPUS": "3",
         "TotalCPU": "16:00", "ReqMem": "2Mc", "TimelimitRaw": "90"},
        {"JobID": "9+0", "AllocCPUS": "2", "ReqCPUS": "1", "TotalCPU": "04:00", "ReqMem": "6Mc"},
        {"JobID": "9+1.0", "MaxRSS": "8K"},
        {"JobID": "9+0.0", "MaxRSS": "7K"},
    ]  # fmt: skip
    trace = read(*rows)
    row = job(trace)
    assert (8, 4, 150, 8, 5400, 3072) == (
        row["allocated_processors"], row["requested_processors"], row["average_cpu"],
        row["memory"], row["requested_time"], row["requested_memory"],
    )  # fmt: skip
    assert ({1: "ada"}, {1: "long"}) == (trace.names["user"], trace.names["queue"])
    assert ["9"] == trace.extra["job_id"].tolist()
    assert {PARTS: 1} == trace.repaired


def test_heterogeneous_job_fails_with_a_part() -> None:
    """It completed if all parts did, and lasts from the first start to the last end."""
    late = {"JobID": "9+1", "Start": "2024-01-31T12:06:00", "ElapsedRaw": "900", "State": "TIMEOUT"}
    row = job(read({"JobID": "9+0"}, late))
    assert (300, 960, 0) == (row["wait"], row["run"], row["status"])


def test_heterogeneous_job_that_is_not_over() -> None:
    """If a part is not over, the job is not, and is counted once."""
    trace = read({"JobID": "2"}, {"JobID": "9+0"}, {"JobID": "9+1", "State": "RUNNING"})
    assert ["2"] == trace.extra["job_id"].tolist()
    assert {"state RUNNING": 1} == trace.dropped


def test_part_alone() -> None:
    """A part without the others is a job as it stands."""
    trace = read({"JobID": "9+1", "AllocCPUS": "6"})
    assert (["9+1"], {}) == (trace.extra["job_id"].tolist(), trace.repaired)


def test_heterogeneous_job_that_ran_again() -> None:
    """Parts are put together after their runs are."""
    rows = [
        {"JobID": f"9+{part}", "AllocCPUS": "4"} | run
        for run in ({"State": "NODE_FAIL"}, LATER)
        for part in (0, 1)
    ]
    trace = read(*rows)
    assert (1, 8, 4200, 60) == (
        len(trace), trace["allocated_processors"][0], trace["wait"][0], trace["run"][0]
    )  # fmt: skip
    assert {PARTS: 1, AGAIN: 1} == trace.repaired


def test_size_of_the_machine_is_the_most_in_use() -> None:
    """MaxProcs is the most processors that jobs held at one time; ends come before starts."""
    rows = [
        {"JobID": "1", "AllocCPUS": "4"},
        {"JobID": "2", "AllocCPUS": "3"},
        {"JobID": "3", "AllocCPUS": "6", "Start": "2024-01-31T12:15:00"},
        {"JobID": "4", "AllocCPUS": "99", "State": "CANCELLED", "Start": "None", "ElapsedRaw": "0"},
    ]
    assert 7 == read(*rows).processors


def test_all_columns_are_used() -> None:
    """Each column that the command asks for changes some field."""
    other = {
        "User": "x", "Account": "x", "JobName": "x", "Partition": "x", "Cluster": "x",
        "Submit": "2024-01-31T11:00:00", "Start": "2024-01-31T12:01:00", "ElapsedRaw": "3",
        "State": "FAILED", "AllocCPUS": "9", "ReqCPUS": "9", "TimelimitRaw": "9", "ReqMem": "9G",
        "MaxRSS": "9K", "TotalCPU": "09:00", "JobID": "9",
    }  # fmt: skip
    plain = read({})

    def differs(name: str, word: str) -> bool:
        trace = read({name: word})
        return (
            job(trace) != job(plain)
            or trace.names != plain.names
            or trace.extra["job_id"][0] != plain.extra["job_id"][0]
            or trace.header.lines != plain.header.lines
        )

    assert [] == [name for name, word in other.items() if not differs(name, word)]
    assert {"QOS", "End", "NNodes"} == set(JOB) - set(other)  # tested above
