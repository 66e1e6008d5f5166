"""The state of a cluster from its Slurm: small texts in every form, and what a real one printed."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hpcrowd.environment.errors import MachineError, ParseError, QuantityError, TraceError
from hpcrowd.environment.jobs import Int64s, number_of
from hpcrowd.environment.machine.past import Placed
from hpcrowd.environment.machine.requests import Ask
from hpcrowd.environment.state.files import read_state, write_state
from hpcrowd.environment.state.slurm import state_of_slurm
from hpcrowd.environment.state.state import ClusterState

from tests.environment.state.test_slurm_now import SCONTROL, SQUEUE, objects

Write = Callable[..., Path]

#: Noon of the last day of January, UTC, as in the texts.
NOON = 1_706_702_400

#: The columns of the queue in these tests.
COLUMNS = ("JOBID|USER|ACCOUNT|PARTITION|QOS|STATE|PRIORITY|REASON|SUBMIT_TIME|START_TIME|TIME|"
           "TIME_LIMIT|CPUS|NODELIST|NAME|END_TIME")  # fmt: skip

#: What is over, as sacct prints it.
PAST = """JobID|User|Account|JobName|Partition|QOS|Submit|Start|End|ElapsedRaw|State|AllocCPUS|ReqCPUS|TimelimitRaw
5|ada|science|prepare|main|normal|2024-01-31T08:00:00|2024-01-31T08:10:00|2024-01-31T09:10:00|3600|COMPLETED|8|4|90
6|eve|arts|draw|gpu|normal|2024-01-31T08:30:00|2024-01-31T08:30:00|2024-01-31T08:31:00|60|FAILED|2|2|10
23|ada|science|a|main|normal|2024-01-31T12:00:00|2024-01-31T12:00:10|Unknown|4|RUNNING|4|4|2
"""  # noqa: E501


def row(job: str, **cells: str) -> str:
    """A line of the queue; a job of ada that runs for four minutes unless said otherwise."""
    usual = {
        "USER": "ada", "ACCOUNT": "science", "PARTITION": "main", "QOS": "normal",
        "STATE": "RUNNING", "PRIORITY": "700", "REASON": "None",
        "SUBMIT_TIME": "2024-01-31T11:50:00", "START_TIME": "2024-01-31T12:00:00",
        "TIME": "4:00", "TIME_LIMIT": "1:00:00", "CPUS": "4", "NODELIST": "n[1-2]", "NAME": "a",
        "END_TIME": "N/A",
    }  # fmt: skip
    waits = {"START_TIME": "N/A", "TIME": "0:00", "NODELIST": ""}
    found = {"JOBID": job} | usual | (waits if cells.get("STATE") == "PENDING" else {}) | cells
    return "|".join(found[name] for name in COLUMNS.split("|"))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a queue of these rows, or another text, and return its path."""

    def file(*rows: str, name: str = "queue.txt", text: str | bytes = "") -> Path:
        path = tmp_path / name
        found = text or "\n".join((COLUMNS, *rows)) + "\n"
        path.write_bytes(found if isinstance(found, bytes) else found.encode())
        return path

    return file


def ids(state: ClusterState, rows: Int64s) -> list[str]:
    """The numbers in Slurm of some jobs."""
    return [state.jobs.who(number, "job") for number in state.jobs.number[rows].tolist()]


def row_of(state: ClusterState, job: str) -> int:
    """The row of a job with this number in Slurm; there is only one."""
    (found,) = (r for r, one in enumerate(ids(state, state.jobs.number - 1)) if one == job)
    return found


def one_line(text: str) -> str:
    """The records of ``scontrol`` in a line each, as with ``-o``."""
    return "\n".join(
        " ".join(line.strip() for line in job.splitlines()) for job in text.split("\n\n")
    )


@pytest.mark.parametrize("form", ["scontrol", "scontrol -o", "squeue", "json"])
def test_every_form_of_the_queue(write: Write, form: str) -> None:
    """What runs, waits and is held, since when and with what limits; the past is joined by name."""
    texts: dict[str, str | bytes] = {
        "scontrol": SCONTROL, "scontrol -o": one_line(SCONTROL), "squeue": SQUEUE,
        "json": objects(),
    }  # fmt: skip
    queue = write(text=texts[form])
    state = state_of_slurm(
        queue, write(name="past.txt", text=PAST), processors=16, zone="Europe/Berlin"
        if form != "json" else "UTC",
    )  # fmt: skip
    jobs = state.jobs
    assert ["23"] == ids(state, state.running)
    assert ["27_0", "27_2", "27_4", "27_9", "28"] == ids(state, state.waiting)
    assert ["5", "6"] == ids(state, state.over)
    start = int(jobs.recorded_start[row_of(state, "23")])
    assert start + 4 == state.now  # it has run for four seconds
    assert state.clock.local(start).strftime("%F %T") == "2024-01-31 12:00:10"
    assert state.clock.known
    assert 120 == jobs.requested_time[row_of(state, "23")]
    assert -1 == jobs.requested_time[row_of(state, "27_9")]  # UNLIMITED
    assert 8 == jobs.processors[row_of(state, "5")]  # held, not asked for
    assert jobs.user[row_of(state, "5")] == jobs.user[row_of(state, "23")]
    assert jobs.group[row_of(state, "6")] != jobs.group[row_of(state, "5")]
    reason = "priority 0" if form in ("squeue", "json") else "Dependency"  # these have no reasons
    assert {row_of(state, "28"): reason} == state.held
    assert jobs.requests is not None
    assert [27] * 4 == jobs.requests[Ask.ARRAY][state.waiting[:4]].tolist()
    assert [1] * 4 == jobs.requests[Ask.THROTTLE][state.waiting[:4]].tolist()
    lines = None if state.lines is None else state.lines[state.waiting].tolist()
    assert {"scontrol": [14] * 4 + [26], "scontrol -o": [2] * 4 + [3], "squeue": [3] * 4 + [4],
            "json": [0] * 5}[form] == lines  # fmt: skip
    write_state(state, queue.with_name("now.gz"))
    read = read_state(queue.with_name("now.gz"))
    assert ids(state, state.running) == ids(read, read.running)
    assert state.held == read.held
    assert state.placed == read.placed


def test_of_the_two_records_each_job_counts_once(write: Write) -> None:
    """The queue counts for what is there, the accounting for what is over."""
    past = PAST + "\n".join((
        # Still listed, and over by the accounting: over.
        "30|ada|science|a|main|normal|2024-01-31T11:50:00|2024-01-31T12:00:00|"
        "2024-01-31T12:03:59|239|COMPLETED|4|4|60",
        # Over only after the queue was printed: it runs.
        "31|ada|science|a|main|normal|2024-01-31T11:50:00|2024-01-31T12:00:00|"
        "2024-01-31T12:09:00|540|COMPLETED|4|4|60",
        # Preempted, and back in the queue.
        "32|ada|science|a|main|normal|2024-01-31T10:00:00|2024-01-31T10:00:00|"
        "2024-01-31T11:50:00|6600|PREEMPTED|4|4|60",
        # Another job that had the number before.
        "33|eve|science|a|main|normal|2024-01-31T07:00:00|2024-01-31T07:00:00|"
        "2024-01-31T07:10:00|600|COMPLETED|4|4|60",
        # Submitted after the queue was printed.
        "40|ada|science|a|main|normal|2024-01-31T12:05:00|2024-01-31T12:05:00|"
        "2024-01-31T12:06:00|60|COMPLETED|4|4|60",
        # Ran then, and was not listed.
        "41|ada|science|a|main|normal|2024-01-31T11:00:00|2024-01-31T12:00:00|"
        "2024-01-31T12:06:00|360|COMPLETED|4|4|60",
    ))  # fmt: skip
    waits = {"STATE": "PENDING", "REASON": "Priority"}
    queue = write(row("30", STATE="COMPLETING"), row("31"), row("32", **waits), row("33", **waits))
    state = state_of_slurm(queue, write(name="past.txt", text=past), zone="UTC")
    assert ["31"] == ids(state, state.running)
    assert ["32", "33"] == ids(state, state.waiting)
    assert ["33", "5", "6", "30"] == ids(state, state.over)
    assert state.clock.unix_start + state.now == NOON + 240
    assert {
        "1 job dropped: submitted after the moment of the state",
        "1 job dropped: in the accounting it runs at that moment, and the queue does not list it",
        "1 job dropped: the queue still lists it, and the accounting has its end",
        "1 job dropped: earlier runs of jobs that are back in the queue",
    } == {note for note in state.notes if "dropped" in note}
    assert {"ada", "eve"} == set(state.jobs.names["user"].values())
    with pytest.raises(QuantityError, match="job '33': several have this name"):
        number_of(state.jobs.names, "job", "33")


def test_jobs_that_are_over_and_still_listed(write: Write) -> None:
    """Slurm lists them for some minutes: they are the past if there is no accounting."""
    state = state_of_slurm(
        write(row("30", STATE="COMPLETED", END_TIME="2024-01-31T12:01:00"), row("31")),
        zone="UTC",
        processors=8,
    )
    assert (["31"], ["30"]) == (ids(state, state.running), ids(state, state.over))


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        ({"REASON": "JobHeldUser", "PRIORITY": "0"}, "JobHeldUser"),
        ({"REASON": "Dependency"}, "Dependency"),
        ({"REASON": "DependencyNeverSatisfied"}, "DependencyNeverSatisfied"),
        ({"REASON": "launch failed requeued held"}, "launch failed requeued held"),
        ({"REASON": "QOSMaxCpuPerJobLimit"}, "QOSMaxCpuPerJobLimit"),
        ({"REASON": "AssocMaxWallDurationPerJobLimit"}, "AssocMaxWallDurationPerJobLimit"),
        ({"REASON": "None", "PRIORITY": "0"}, "priority 0"),
        ({"REASON": "SomethingNew", "PRIORITY": "0"}, "SomethingNew"),
        ({"STATE": "REQUEUE_HOLD", "REASON": "None"}, "REQUEUE_HOLD"),
        ({"STATE": "SUSPENDED"}, "SUSPENDED"),
        ({"REASON": "Resources"}, None),
        ({"REASON": "QOSMaxCpuPerUserLimit"}, None),
        ({"REASON": "JobArrayTaskLimit"}, None),
        ({"REASON": "ReqNodeNotAvail, UnavailableNodes:n1"}, None),
        ({"REASON": "BeginTime", "START_TIME": "2024-01-31T18:00:00"}, None),
    ],
)
def test_held(write: Write, cells: dict[str, str], held: str | None) -> None:
    """Jobs that will not start by themselves are held, for Slurm's reason; others only wait."""
    queue = write(row("1"), row("2", **({"STATE": "PENDING"} | cells)))
    state = state_of_slurm(queue, zone="UTC", processors=8)
    second = row_of(state, "2")
    assert second in state.waiting
    assert state.held == ({} if held is None else {second: held})
    assert (held == "SUSPENDED") == any("1 suspended job: taken as held" in n for n in state.notes)
    reason = cells.get("REASON", "None")
    if reason != "None":
        assert reason == state.placed[second].reason


def test_begin_times_and_places(write: Write) -> None:
    """A job that waits for a time asks for it; one that runs has its partition and nodes."""
    later = {"STATE": "PENDING", "REASON": "BeginTime", "START_TIME": "2024-01-31T18:00:00"}
    queue = write(row("1"), row("2", **later, PARTITION="gpu,main"))
    state = state_of_slurm(queue, zone="UTC", processors=8)
    runs, waits = row_of(state, "1"), row_of(state, "2")
    begin = NOON + 6 * 3600 - state.clock.unix_start
    assert state.jobs.requests is not None
    assert [begin, -1] == [int(state.jobs.requests[Ask.BEGIN][one]) for one in (waits, runs)]
    assert {
        runs: Placed("main", ("n1", "n2")),
        waits: Placed(eligible=begin, reason="BeginTime"),
    } == state.placed


def test_the_moment(write: Write, tmp_path: Path) -> None:
    """Given, else the latest in the queue, else that of an empty file."""

    def unix(state: ClusterState) -> int:
        return state.clock.unix_start + state.now

    past = write(name="past.txt", text=PAST)
    queue = write(row("1"))
    assert NOON + 240 == unix(state_of_slurm(queue, zone="UTC"))
    assert NOON + 300 == unix(state_of_slurm(queue, zone="UTC", now=NOON + 300))
    wall = datetime(2024, 1, 31, 12, 5)
    assert NOON + 300 == unix(state_of_slurm(queue, zone="UTC", now=wall))
    berlin = state_of_slurm(queue, zone="Europe/Berlin", now=wall)
    assert NOON + 300 - 3600 == unix(berlin)
    assert NOON + 300 == unix(state_of_slurm(queue, now=wall.replace(tzinfo=UTC)))
    waits = {"STATE": "PENDING", "SUBMIT_TIME": "2024-01-31T11:59:00"}
    found = state_of_slurm(write(row("1", **waits)), zone="UTC", processors=4)
    assert NOON - 60 == unix(found)
    assert any("no job shows for how long it runs" in note for note in found.notes)
    for text in (COLUMNS + "\n", "No jobs in the system\n", '{"meta": {}, "jobs": []}'):
        empty = write(text=text)
        os.utime(empty, (NOON + 7200, NOON + 7200))
        found = state_of_slurm(empty, past, zone="UTC")
        assert NOON + 7200 == unix(found)
        assert "the queue is empty: its moment is the time of the file" in found.notes
        assert (0, 0, 2) == (len(found.running), len(found.waiting), len(found.over))
    with pytest.raises(TraceError, match="nothing waits or runs; give what is over, too: sacct"):
        state_of_slurm(write(text=COLUMNS + "\n"))
    with pytest.raises(QuantityError, match="now 0: must be from 1 to"):
        state_of_slurm(queue, now=0)


NODES = """NodeName=n1 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=4 CPUEfctv=4 CPUTot=4 RealMemory=1000 State=ALLOCATED
NodeName=n2 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=1 CPUEfctv=4 CPUTot=4 RealMemory=1000 State=MIXED+DRAIN
NodeName=n3 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=0 CPUEfctv=4 CPUTot=4 RealMemory=1000 State=DOWN*
NodeName=n4 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=0 CPUEfctv=4 CPUTot=4 RealMemory=1000 State=IDLE
PartitionName=main
   AllowGroups=ALL AllowAccounts=ALL
   Nodes=n[1-4] State=UP
"""

RESERVATIONS = """ReservationName=old StartTime=2024-01-30T12:00:00 EndTime=2024-01-30T13:00:00
   Nodes=n[1-4] Flags=MAINT,SPEC_NODES
ReservationName=all StartTime=2024-01-31T20:00:00 EndTime=2024-01-31T22:00:00
   Nodes=n[1-4] Users=root Flags=MAINT,SPEC_NODES
ReservationName=course StartTime=2024-01-31T14:00:00 EndTime=2024-01-31T15:00:00
   Nodes=n4 Users=eve Flags=SPEC_NODES
"""


def test_the_machine(write: Write) -> None:
    """Size, idle cores of nodes that are down or drain, partitions and closed times."""
    queue = write(row("1", CPUS="5"))
    nodes = write(name="nodes.txt", text=NODES)
    times = write(name="reservations.txt", text=RESERVATIONS)
    state = state_of_slurm(queue, zone="UTC", machine=[nodes, times])
    assert (16, 3 + 4, ("main",)) == (state.processors, state.down, state.partitions)
    origin = state.clock.unix_start
    assert ((NOON + 8 * 3600 - origin, NOON + 10 * 3600 - origin),) == state.closed
    assert "reservation course: of part of the machine, or for some; not closed" in state.notes
    assert 12 == state_of_slurm(queue, zone="UTC", machine=nodes, processors=12).processors
    objects_of = {"nodes": [
        {"name": "n1", "cpus": 4, "cores": 4, "real_memory": 1000, "state": ["MIXED", "DRAIN"],
         "alloc_cpus": 1},
        {"name": "n2", "cpus": 4, "cores": 4, "real_memory": 1000, "state": ["IDLE"]},
    ]}  # fmt: skip
    shown = write(name="nodes.json", text=json.dumps(objects_of))
    state = state_of_slurm(write(row("1", CPUS="5")), zone="UTC", machine=shown)
    assert (8, 3) == (state.processors, state.down)
    conf = "NodeName=n[1-4] CPUs=4 RealMemory=1000 State=DOWN\nPartitionName=main Nodes=ALL\n"
    both = [nodes, write(name="slurm.conf", text=conf)]
    assert 7 == state_of_slurm(queue, zone="UTC", machine=both).down  # what scontrol shows counts


def test_the_size_without_a_machine(write: Write) -> None:
    """The most in use at once, and at least what a waiting job asks for that is not held."""
    past = write(name="past.txt", text=PAST)
    found = state_of_slurm(write(row("1", CPUS="3")), past, zone="UTC")
    assert 10 == found.processors  # 5 and 6 at 8:30
    assert any(note.startswith("the size of the machine is not given") for note in found.notes)
    waits = {"STATE": "PENDING", "REASON": "Priority", "CPUS": "40"}
    assert 40 == state_of_slurm(write(row("1"), row("2", **waits)), past, zone="UTC").processors
    waits["REASON"] = "PartitionNodeLimit"
    assert 10 == state_of_slurm(write(row("1"), row("2", **waits)), past, zone="UTC").processors


def test_contradictions_have_the_line_of_the_queue(write: Write) -> None:
    """Too much running, a job that starts later, an unknown partition, a name that is no node."""
    nodes = write(name="nodes.txt", text=NODES)
    queue = write(row("1"), row("2", CPUS="6"))
    with pytest.raises(ParseError, match=r"queue.txt, line 3, .*'6': job 2: 2 running jobs on 10"):
        state_of_slurm(queue, zone="UTC", processors=9)
    with pytest.raises(ParseError, match=r"queue.txt, line 3, .*, and the machine has 16, less 7"):
        state_of_slurm(queue, zone="UTC", machine=nodes)
    with pytest.raises(ParseError, match=r"queue.txt, line 2, field start: .*later than the mom"):
        state_of_slurm(queue, zone="UTC", now=NOON - 10)
    queue = write(row("1", PARTITION="mian"))
    with pytest.raises(ParseError, match=r"line 2, field queue: 'mian': .*did you mean main?"):
        state_of_slurm(queue, zone="UTC", machine=nodes)
    queue = write(row("1", NODELIST="n[1-2"))
    with pytest.raises(ParseError, match=r"line 2, field nodes: 'n\[1-2': job 1: brackets do not"):
        state_of_slurm(queue, zone="UTC")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAST, "is not what waits and runs in Slurm; write it with squeue -a -r -o %all, squeue"),
        ('{"jobs": [{"state": {}}], "meta": "openapi"}', "is accounting, not the queue; write it"),
        ('{"jobs": [' + "[" * 100_000, "a job is nested too deeply to be read"),
        ('{"jobs": [{"job_state": "RUNNING"', "ends, or is damaged, after job 0 of the list"),
        ("; SWF\n1 2 3\n", "is not what waits and runs in Slurm"),
        ("             JOBID PARTITION     NAME     USER ST       TIME\n", "cut to a width"),
        (
            f"{COLUMNS}\n\n{row('1', STATE='RUNNlNG')}\n",
            "queue.txt, line 3: state 'RUNNlNG': not a known job state, such as COMPLETED",
        ),
        (f"{COLUMNS}\n{row('1', TIME='4 min')}\n", "line 2: run time '4 min': not a duration"),
        (
            SCONTROL.replace("JobState=PENDING", "JobState=PENDlNG", 1),
            "queue.txt, line 14: state 'PENDlNG': not a known job state",
        ),
        (
            '{"jobs": [{"job_id": 7, "job_state": "?"}], "meta": "openapi"}',
            "queue.txt, job 7: state '?': not a known job state",
        ),
        (COLUMNS.replace("|SUBMIT_TIME", "") + "\n1|2\n", "squeue without SUBMIT_TIME"),
    ],
)
def test_other_files(write: Write, text: str, message: str) -> None:
    """What is not the queue is refused in one line, with the command that prints it."""
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        state_of_slurm(write(text=text))
    assert str(caught.value).isprintable()


def test_other_mistakes(write: Write, tmp_path: Path) -> None:
    """Missing files, zones and machines that do not exist, times that are none."""
    queue = write(row("1"))
    with pytest.raises(TraceError, match="none: cannot be read"):
        state_of_slurm(tmp_path / "none")
    with pytest.raises(TraceError, match="none: cannot be read"):
        state_of_slurm(queue, tmp_path / "none")
    with pytest.raises(QuantityError, match="zone 'Mars': not known"):
        state_of_slurm(queue, zone="Mars")
    with pytest.raises(MachineError, match="does not describe a machine"):
        state_of_slurm(queue, machine=queue)
    with pytest.raises(QuantityError, match="processors 0: must be from 1"):
        state_of_slurm(queue, processors=0)
    job: dict[str, Any] = {"job_id": 1, "job_state": "RUNNING", "cpus": 1, "submit_time": NOON,
                           "start_time": NOON, "last_sched_evaluation": 2**50}  # fmt: skip
    with pytest.raises(TraceError, match="s since 1970, which is not a time of Slurm"):
        state_of_slurm(write(text=json.dumps({"jobs": [job], "meta": "openapi"})))


def test_unknown_zone_is_noted(write: Write) -> None:
    """Without a zone, times are UTC, and the state says so."""
    state = state_of_slurm(write(row("1")))
    assert not state.clock.known
    assert "time zone not in the trace: times are UTC" in state.notes


# ------------------------------------------------------------------------------------ a real Slurm


def test_dumps_of_a_real_slurm(slurm_dumps: Path, tmp_path: Path) -> None:
    """What is left of a busy morning: one held job and 409 that are over, in every form."""
    machine = [slurm_dumps / f"scontrol-{name}.txt" for name in ("nodes", "partitions")]
    queue = slurm_dumps / "scontrol-jobs.txt.gz"
    for past in ("guide-tame.txt", "json-D.txt.gz"):
        state = state_of_slurm(queue, slurm_dumps / past, machine=machine, zone="UTC")
        assert (0, ["327"], 409) == (
            len(state.running), ids(state, state.waiting), len(state.over)
        )  # fmt: skip
        assert {row_of(state, "327"): "JobHeldUser"} == state.held
        assert (32, 0) == (state.processors, state.down)
        assert ("main", "short", "gpu", "scav") == state.partitions
    write_state(state, tmp_path / "now.gz")
    read = read_state(tmp_path / "now.gz")
    assert state.jobs.matrix.tolist() == read.jobs.matrix.tolist()
    assert ids(state, state.over) == ids(read, read.over)
    with pytest.raises(TraceError, match=r"columns cut to a width; print them with squeue -a -r"):
        state_of_slurm(slurm_dumps / "squeue.txt")
    with pytest.raises(TraceError, match="is accounting, not the queue"):
        state_of_slurm(slurm_dumps / "json-D.txt.gz")


class Record(NamedTuple):
    """A run of a job in the accounting; times are Unix times, None if there is none."""

    job: str
    submit: int
    start: int | None
    end: int | None
    cells: dict[str, str]


def unix(text: str) -> int | None:
    """A time of sacct, UTC."""
    try:
        return int(datetime.fromisoformat(f"{text}+00:00").timestamp())
    except ValueError:
        return None


def records_of(run: Path) -> list[Record]:
    """All runs of all jobs, as the accounting has them afterwards."""
    text = gzip.decompress((run / "sacct-allstates-tame.txt.gz").read_bytes()).decode()
    header, *lines = [line.split("|") for line in text.splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    return [
        Record(one["JobID"], unix(one["Submit"]) or 0, unix(one["Start"]), unix(one["End"]), one)
        for one in rows
        if "." not in one["JobID"]
    ]


def samples_of(run: Path) -> Iterator[tuple[int, str]]:
    """The queue of every 15 minutes: the moment, Unix time, and what squeue printed."""
    text = gzip.decompress((run / "samples-squeue.txt.gz").read_bytes()).decode()
    for block in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        yield unix(head.split()[0]) or 0, body


@pytest.mark.parametrize("name", ["A", "C", "F"])
def test_as_the_accounting_says_afterwards(referee_runs: Path, tmp_path: Path, name: str) -> None:
    """Who ran and who waited when the queue was printed, by what the accounting knew in the end.

    The two differ in jobs that were submitted in that second, and in jobs whose dependency is never
    satisfied: the accounting has none before they are eligible. Processors, limits and begin times
    are those of the accounting.
    """
    run = referee_runs / f"run{name}"
    machine = [run / one for one in ("slurm.conf", "scontrol-node.txt", "scontrol-partition.txt")]
    records = records_of(run)
    last = max(record.end or 0 for record in records)
    moments = [one for one in samples_of(run) if one[0] < last and one[1].count("\n") > 1]
    assert len(moments) > 30
    ran = waited = 0
    for now, text in moments[3::9]:
        queue = tmp_path / "queue.txt"
        queue.write_text(text)
        past = run / "sacct-allstates-tame.txt.gz"
        state = state_of_slurm(queue, past, now=now, machine=machine, zone="UTC")
        assert now == state.clock.unix_start + state.now
        assert (80, 0) == (state.processors, state.down)
        submitted = [one for one in records if one.submit <= now]
        runs = {
            one.job: one
            for one in submitted
            if one.start is not None and one.start <= now and (one.end is None or one.end > now)
        }
        waits = {
            one.job: one
            for one in submitted
            if (one.start or last + 1) > now and (one.end or last + 1) > now
        }
        this_second = {one.job for one in submitted if one.submit == now}
        assert set(runs) == set(ids(state, state.running))
        listed = set(ids(state, state.waiting))
        assert set(waits) - listed <= this_second
        assert listed - set(waits) <= set(ids(state, np.array(sorted(state.held), np.int64)))
        jobs, requests = state.jobs, state.jobs.requests
        assert requests is not None
        for row in state.running.tolist():
            one = runs[jobs.who(int(jobs.number[row]), "job")]
            assert int(one.cells["AllocCPUS"]) == jobs.processors[row]
            assert 60 * int(one.cells["TimelimitRaw"]) == jobs.requested_time[row]
            assert one.start == jobs.recorded_start[row] + state.clock.unix_start
            assert one.cells["Partition"] == state.placed[row].partition
            assert int(one.cells["NNodes"]) == len(state.placed[row].nodes)
        for row in state.waiting.tolist():
            begin = int(requests[Ask.BEGIN][row])
            job = jobs.who(int(jobs.number[row]), "job")
            if begin >= 0 and job in waits:
                assert unix(waits[job].cells["Eligible"]) == begin + state.clock.unix_start
        ran, waited = ran + len(state.running), waited + len(state.waiting)
    assert ran > 20
    assert waited > 20
