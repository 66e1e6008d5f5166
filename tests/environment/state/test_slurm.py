"""The state of a cluster from its Slurm: small texts in every form, and what a real one printed."""

import gzip
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.errors import HpcrowdError, ParseError, QuantityError, TraceError
from hpcrowd.environment.jobs import number_of
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.state.files import read_state, write_state
from hpcrowd.environment.state.slurm import state_of_slurm

from tests.environment.state.test_slurm_now import SCONTROL, forms

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


def row(job, **cells):
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
def write(tmp_path):
    """Write a queue of these rows, or another text, and return its path."""

    def file(*rows, name="queue.txt", text=""):
        path = tmp_path / name
        found = text or "\n".join((COLUMNS, *rows)) + "\n"
        path.write_bytes(found if isinstance(found, bytes) else found.encode())
        return path

    return file


def ids(state, rows):
    """The numbers in Slurm of some jobs."""
    return [state.jobs.who(number, "job") for number in state.jobs.number[rows].tolist()]


def row_of(state, job):
    """The row of a job with this number in Slurm; there is only one."""
    (found,) = (r for r, one in enumerate(ids(state, state.jobs.number - 1)) if one == job)
    return found


@pytest.mark.parametrize("form", ["scontrol", "scontrol -o", "squeue", "json"])
def test_every_form_of_the_queue(write, form):
    """What runs, waits and is held, since when and with what limits; the past is joined by name."""
    lines = {"scontrol": [14] * 4 + [26], "scontrol -o": [2] * 4 + [3], "squeue": [3] * 4 + [4],
             "json": [0] * 5}  # fmt: skip
    queue = write(text=forms()[form])
    zone = "UTC" if form == "json" else "Europe/Berlin"
    state = state_of_slurm(queue, write(name="past.txt", text=PAST), processors=16, zone=zone)
    jobs, requests = state.jobs, state.jobs.requests
    assert requests is not None
    assert state.lines is not None
    assert ["23"] == ids(state, state.running)
    assert ["27_0", "27_2", "27_4", "27_9", "28"] == ids(state, state.waiting)
    assert ["5", "6"] == ids(state, state.over)
    runs, limitless, done, other = (row_of(state, one) for one in ("23", "27_9", "5", "6"))
    start = int(jobs.recorded_start[runs])
    assert start + 4 == state.now  # it has run for four seconds
    assert "2024-01-31 12:00:10" == state.clock.local(start).strftime("%F %T")
    assert state.clock.known
    assert [120, -1] == jobs.requested_time[[runs, limitless]].tolist()
    assert 8 == jobs.processors[done]  # held, not asked for
    assert jobs.user[done] == jobs.user[runs]
    assert jobs.group[other] != jobs.group[done]
    reason = "priority 0" if form in ("squeue", "json") else "Dependency"  # these have no reasons
    assert {row_of(state, "28"): reason} == state.held
    assert [27] * 4 == requests[Ask.ARRAY][state.waiting[:4]].tolist()
    assert [1] * 4 == requests[Ask.THROTTLE][state.waiting[:4]].tolist()
    assert lines[form] == state.lines[state.waiting].tolist()


def over(job, submit, start, end, state="COMPLETED"):
    """A line of the accounting; times are of the last day of January."""
    times = [f"2024-01-31T{one}" for one in (submit, start, end)]
    ran = (datetime.fromisoformat(times[2]) - datetime.fromisoformat(times[1])).seconds
    user = "eve" if job == "33" else "ada"
    return f"{job}|{user}|science|a|main|normal|{'|'.join(times)}|{ran}|{state}|4|4|60"


def test_of_the_two_records_each_job_counts_once(write):
    """The queue counts for what is there, the accounting for what is over."""
    past = PAST + "\n".join((
        over("30", "11:50:00", "12:00:00", "12:03:59"),  # still listed, and over: over
        over("31", "11:50:00", "12:00:00", "12:09:00"),  # over after the queue was printed: runs
        over("32", "10:00:00", "10:00:00", "11:50:00", "PREEMPTED"),  # back in the queue
        over("33", "07:00:00", "07:00:00", "07:10:00"),  # another job that had the number before
        over("40", "12:05:00", "12:05:00", "12:06:00"),  # submitted after the queue was printed
        over("41", "11:00:00", "12:00:00", "12:06:00"),  # ran then, and was not listed
    ))  # fmt: skip
    waits = {"STATE": "PENDING", "REASON": "Priority"}
    queue = write(row("30", STATE="COMPLETING"), row("31"), row("32", **waits), row("33", **waits))
    state = state_of_slurm(queue, write(name="past.txt", text=past), zone="UTC")
    assert ["31"] == ids(state, state.running)
    assert ["32", "33"] == ids(state, state.waiting)
    assert ["33", "5", "6", "30"] == ids(state, state.over)
    assert NOON + 240 == state.clock.unix_start + state.now
    assert {
        "1 job dropped: submitted after the moment of the state",
        "1 job dropped: in the accounting it runs at that moment, and the queue does not list it",
        "1 job dropped: the queue still lists it, and the accounting has its end",
        "1 job dropped: earlier runs of jobs that are back in the queue",
    } == {note for note in state.notes if "dropped" in note}
    assert {"ada", "eve"} == set(state.jobs.names["user"].values())
    with pytest.raises(QuantityError, match="job '33': several have this name"):
        number_of(state.jobs.names, "job", "33")
    # Without accounting, what Slurm lists for some minutes longer is the past.
    ended = row("30", STATE="COMPLETED", END_TIME="2024-01-31T12:01:00")
    state = state_of_slurm(write(ended, row("31")), zone="UTC", processors=8)
    assert (["31"], ["30"]) == (ids(state, state.running), ids(state, state.over))


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        ({"REASON": "JobHeldUser", "PRIORITY": "0"}, "JobHeldUser"),
        ({"REASON": "Dependency"}, "Dependency"),
        ({"REASON": "launch failed requeued held"}, "launch failed requeued held"),
        ({"REASON": "QOSMaxCpuPerJobLimit"}, "QOSMaxCpuPerJobLimit"),
        ({"REASON": "None", "PRIORITY": "0"}, "priority 0"),
        ({"STATE": "REQUEUE_HOLD", "REASON": "None"}, "REQUEUE_HOLD"),
        ({"STATE": "SUSPENDED"}, "SUSPENDED"),
        ({"REASON": "Resources"}, None),
        ({"REASON": "QOSMaxCpuPerUserLimit"}, None),
        ({"REASON": "ReqNodeNotAvail, UnavailableNodes:n1"}, None),
        ({"REASON": "BeginTime", "START_TIME": "2024-01-31T18:00:00"}, None),
    ],
)
def test_held(write, cells, held):
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


def test_begin_times_and_places(write):
    """A job that waits for a time asks for it; one that runs has its partition and nodes."""
    later = {"STATE": "PENDING", "REASON": "BeginTime", "START_TIME": "2024-01-31T18:00:00"}
    queue = write(row("1"), row("2", **later, PARTITION="gpu,main"))
    state = state_of_slurm(queue, processors=8)
    runs, waits = row_of(state, "1"), row_of(state, "2")
    begin = NOON + 6 * 3600 - state.clock.unix_start
    assert state.jobs.requests is not None
    assert [begin, -1] == state.jobs.requests[Ask.BEGIN][[waits, runs]].tolist()
    assert {
        runs: Placed("main", ("n1", "n2")),
        waits: Placed(eligible=begin, reason="BeginTime"),
    } == state.placed
    assert not state.clock.known
    assert "time zone not in the trace: times are UTC" in state.notes


WALL = datetime(2024, 1, 31, 12, 5)


@pytest.mark.parametrize(
    ("zone", "now", "moment"),
    [("UTC", None, 240), ("UTC", NOON + 300, 300), ("UTC", WALL, 300),
     ("Europe/Berlin", WALL, 300 - 3600), (None, WALL.replace(tzinfo=UTC), 300)],
)  # fmt: skip
def test_the_moment(write, zone, now, moment):
    """Given, as Unix time or a date and time, else the latest in the queue."""
    state = state_of_slurm(write(row("1")), zone=zone, now=now)
    assert NOON + moment == state.clock.unix_start + state.now


QUEUE = f"{COLUMNS}\n{row('1')}\n"
WAITS = row("1", STATE="PENDING", SUBMIT_TIME="2024-01-31T11:59:00")
EMPTY = "the queue is empty: its moment is the time of the file"
OF_FILE = "the moment is that of the file; if that is wrong, give it with --at"
OF_EVENT = "the moment is that of what happened last; give it with --at"


@pytest.mark.parametrize(
    ("text", "written", "moment", "note"),
    [
        (f"{COLUMNS}\n{WAITS}\n", 0, -60, "no job shows for how long it runs"),
        *((text, 7200, 7200, EMPTY)
          for text in (COLUMNS + "\n", "No jobs in the system\n", '{"meta": {}, "jobs": []}')),
        (QUEUE.replace("|TIME|", "|TIME_LEFT|").replace("|4:00|", "|56:00|"), 0, 240, ""),
        # The file's time counts if no job would be beyond its limit.
        *((QUEUE.replace("|TIME|", "|X|"), *rest)
          for rest in ((600, 600, OF_FILE), (7200, 0, OF_EVENT), (-10, 0, OF_EVENT))),
    ],
)  # fmt: skip
def test_the_moment_without_run_times(write, text, written, moment, note):
    """From what is left of a limit, else the latest time of a job, or that of the file."""
    queue = write(text=text)
    os.utime(queue, (NOON + written, NOON + written))
    state = state_of_slurm(queue, write(name="past.txt", text=PAST), zone="UTC", processors=4)
    assert NOON + moment == state.clock.unix_start + state.now
    assert note in "; ".join(state.notes)


@pytest.mark.parametrize(("written", "moment"), [(0, 300), (310, 310), (400, 300)])
def test_the_moment_between_ends_in_the_accounting(write, written, moment):
    """Jobs that ran and are not listed ended before; those that are listed and ended did so after.

    No job that ended is dropped.
    """
    past = PAST + "\n".join((
        over("7", "11:00:00", "11:59:00", "12:03:00"),
        over("8", "12:00:30", "12:02:00", "12:05:00"),  # it ran when 7 had ended
        over("1", "11:50:00", "12:00:00", "12:06:00"),  # the queue lists it
        over("9", "12:05:30", "12:05:40", "12:05:50"),  # later than the queue, or not
    ))  # fmt: skip
    queue = write(text=QUEUE.replace("|TIME|", "|X|"))
    os.utime(queue, (NOON + written, NOON + written))
    state = state_of_slurm(queue, write(name="past.txt", text=past), zone="UTC", processors=16)
    assert NOON + moment == state.clock.unix_start + state.now
    assert ["1"] == ids(state, state.running)
    assert {"5", "6", "7", "8"} == set(ids(state, state.over))
    assert not any("does not list" in note for note in state.notes)


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


def test_the_machine(write):
    """Size, idle cores of nodes that are down or drain, partitions and closed times."""
    queue = write(row("1", CPUS="5"))
    nodes = write(name="nodes.txt", text=NODES)
    times = write(name="reservations.txt", text=RESERVATIONS)
    state = state_of_slurm(queue, zone="UTC", machine=[nodes, times])
    assert (16, 3 + 4, ("main",)) == (state.processors, state.down, state.partitions)
    evening = NOON + 8 * 3600 - state.clock.unix_start
    assert ((evening, evening + 2 * 3600),) == state.closed
    assert "reservation course: of part of the machine, or for some; not closed" in state.notes
    assert 12 == state_of_slurm(queue, zone="UTC", machine=nodes, processors=12).processors
    shown = [
        {"name": name, "cpus": 4, "cores": 4, "real_memory": 1000, "state": state} | more
        for name, state, more in (
            ("n1", ["MIXED", "DRAIN"], {"alloc_cpus": 1}),
            ("n2", ["IDLE"], {}),
        )
    ]
    objects = write(name="nodes.json", text=json.dumps({"nodes": shown}))
    state = state_of_slurm(queue, zone="UTC", machine=objects)
    assert (8, 3) == (state.processors, state.down)
    conf = "NodeName=n[1-4] CPUs=4 RealMemory=1000 State=DOWN\nPartitionName=main Nodes=ALL\n"
    both = [nodes, write(name="slurm.conf", text=conf)]
    assert 7 == state_of_slurm(queue, zone="UTC", machine=both).down  # what scontrol shows counts


def test_the_size_without_a_machine(write):
    """The most in use at once, and at least what a waiting job asks for that is not held."""
    past = write(name="past.txt", text=PAST)
    state = state_of_slurm(write(row("1", CPUS="3")), past, zone="UTC")
    assert 10 == state.processors  # 5 and 6 at 8:30
    assert any(note.startswith("the size of the machine is not given") for note in state.notes)
    for reason, size in (("Priority", 40), ("PartitionNodeLimit", 10)):
        waits = {"STATE": "PENDING", "REASON": reason, "CPUS": "40"}
        assert size == state_of_slurm(write(row("1"), row("2", **waits)), past).processors


TWO, ONE = [row("1"), row("2", CPUS="6")], [row("1")]
NODES_TOO = {"machine": "nodes.txt"}


@pytest.mark.parametrize(
    ("rows", "how", "words"),
    [
        # Contradictions have the line of the queue.
        (TWO, {"processors": 9}, "queue.txt, line 3, field processors: '6': job 2: 2 running jobs"),
        (TWO, NODES_TOO, "line 3, field processors: '6': job 2: 2 running jobs on 10 processors, "
         "and the machine has 16, less 7"),
        (ONE, {"now": NOON - 10}, "queue.txt, line 2, field start: 'Wed 2024-01-31 12:00:"),
        ([row("1", PARTITION="mian")], NODES_TOO, "line 2, field queue: 'mian': job 1: no"),
        ([row("1", NODELIST="n[1-2")], {}, "line 2, field nodes: 'n[1-2': job 1: brackets do not"),
        # Files, zones and machines that do not exist, times that are none.
        (ONE, {"past": "none"}, "none: cannot be read"),
        (ONE, {"zone": "Mars"}, "zone 'Mars': not known"),
        (ONE, {"machine": "queue.txt"}, "does not describe a machine"),
        (ONE, {"processors": 0}, "processors 0: must be from 1"),
        (ONE, {"now": 0}, "now 0: must be from 1 to"),
    ],
)  # fmt: skip
def test_mistakes(write, monkeypatch, rows, how, words):
    """What cannot be is one line, with the file, the job and the rule."""
    write(name="nodes.txt", text=NODES)
    monkeypatch.chdir(write(*rows).parent)
    with pytest.raises(HpcrowdError, match=re.escape(words)) as caught:
        state_of_slurm(**({"queue": "queue.txt", "zone": "UTC"} | how))
    assert ("line" in words) == isinstance(caught.value, ParseError)


LATE = {"job_id": 1, "job_state": "RUNNING", "cpus": 1, "submit_time": NOON, "start_time": NOON,
        "last_sched_evaluation": 2**50}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAST, "is not what waits and runs in Slurm; write it with squeue -a -r -o %all, squeue"),
        ('{"jobs": [{"state": {}}], "meta": "openapi"}', "is accounting, not the queue; write it"),
        ('{"jobs": [' + "[" * 100_000, "a job is nested too deeply to be read"),
        ('{"jobs": [{"job_state": "RUNNING"', "ends, or is damaged, after job 0 of the list"),
        ("             JOBID PARTITION     NAME     USER ST       TIME\n", "cut to a width"),
        (f"{COLUMNS}\n\n{row('1', STATE='RUNNlNG')}\n", "queue.txt, line 3: state 'RUNNlNG': "),
        (f"{COLUMNS}\n{row('1', TIME='4 min')}\n", "line 2: run time '4 min': not a duration"),
        (SCONTROL.replace("JobState=PENDING", "JobState=PENDlNG", 1),
         "queue.txt, line 14: state 'PENDlNG': not a known job state"),
        ('{"jobs": [{"job_id": 7, "job_state": "?"}], "meta": "openapi"}',
         "queue.txt, job 7: state '?': not a known job state"),
        (json.dumps({"jobs": [LATE], "meta": "openapi"}), "s since 1970, which is not a time"),
        (COLUMNS.replace("|SUBMIT_TIME", "") + "\n1|2\n", "squeue without SUBMIT_TIME"),
        (COLUMNS + "\n", "nothing waits or runs; give what is over, too: sacct"),
    ],
)  # fmt: skip
def test_other_files(write, text, message):
    """What is not the queue is refused in one line, with the command that prints it."""
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        state_of_slurm(write(text=text))
    assert str(caught.value).isprintable()


# ------------------------------------------------------------------------------------ a real Slurm


def test_dumps_of_a_real_slurm(slurm_dumps, tmp_path):
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


def unix(text):
    """A time of sacct, UTC."""
    try:
        return int(datetime.fromisoformat(f"{text}+00:00").timestamp())
    except ValueError:
        return None


def unpacked(path):
    """The text of a packed file."""
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A", "C", "F"])
def test_as_the_accounting_says_afterwards(referee_runs, tmp_path, name):
    """Who ran and who waited when the queue was printed, by what the accounting knew in the end.

    The two differ in jobs that were submitted in that second, and in jobs whose dependency is never
    satisfied: the accounting has none before they are eligible. Processors, limits and begin times
    are those of the accounting.
    """
    run = referee_runs / f"run{name}"
    machine = [run / one for one in ("slurm.conf", "scontrol-node.txt", "scontrol-partition.txt")]
    past = run / "sacct-allstates-tame.txt.gz"
    header, *lines = [line.split("|") for line in unpacked(past).splitlines()]
    records = [dict(zip(header, line, strict=True)) for line in lines]
    never = max(unix(one["End"]) or 0 for one in records) + 1
    spans = [
        (one["JobID"], one, unix(one["Submit"]) or 0, unix(one["Start"]) or never,
         unix(one["End"]) or never)
        for one in records
        if "." not in one["JobID"]
    ]  # fmt: skip
    blocks = re.split(r"^=== ", unpacked(run / "samples-squeue.txt.gz"), flags=re.MULTILINE)[1:]
    samples = [block.partition("\n") for block in blocks]  # of every 15 minutes
    moments = [(unix(head.split()[0]) or 0, body) for head, _, body in samples]
    moments = [(now, body) for now, body in moments if now < never - 1 and body.count("\n") > 1]
    assert len(moments) > 30
    ran = waited = 0
    for now, text in moments[3::9]:
        (tmp_path / "queue.txt").write_text(text)
        state = state_of_slurm(tmp_path / "queue.txt", past, now=now, machine=machine, zone="UTC")
        origin, jobs, requests = state.clock.unix_start, state.jobs, state.jobs.requests
        assert requests is not None
        assert (now, 80, 0) == (origin + state.now, state.processors, state.down)
        runs = {job: (cells, start) for job, cells, submit, start, end in spans
                if submit <= now and start <= now < end}  # fmt: skip
        waits = {job: (cells, submit) for job, cells, submit, start, end in spans
                 if submit <= now < min(start, end)}  # fmt: skip
        listed = set(ids(state, state.waiting))
        assert set(runs) == set(ids(state, state.running))
        assert {now} >= {waits[job][1] for job in set(waits) - listed}
        assert listed - set(waits) <= set(ids(state, np.array(sorted(state.held), np.int64)))
        for row in state.running.tolist():
            cells, start = runs[jobs.who(int(jobs.number[row]), "job")]
            assert int(cells["AllocCPUS"]) == jobs.processors[row]
            assert 60 * int(cells["TimelimitRaw"]) == jobs.requested_time[row]
            assert start == jobs.recorded_start[row] + origin
            assert cells["Partition"] == state.placed[row].partition
            assert int(cells["NNodes"]) == len(state.placed[row].nodes)
        for row in state.waiting.tolist():
            job, begin = jobs.who(int(jobs.number[row]), "job"), int(requests[Ask.BEGIN][row])
            if begin >= 0 and job in waits:
                assert unix(waits[job][0]["Eligible"]) == begin + origin
        ran, waited = ran + len(state.running), waited + len(state.waiting)
    assert min(ran, waited) > 20
