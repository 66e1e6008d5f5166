"""Texts as Slurm's sacct writes them."""

from typing import Any

from hpcrowd import Trace
from hpcrowd.environment.traces.trace import FIELDS
from hpcrowd.formats import FormatOptions, parse_sacct


def told_by(columns: str, values: str) -> dict[str, str]:
    """Return a row, as sacct writes it."""
    return dict(zip(columns.split("|"), values.split("|"), strict=True))


#: What the rows of the tests tell unless they say something else: one processor for ten minutes.
JOB = told_by(
    "JobID|User|Account|JobName|Partition|QOS|Cluster", "1|ada|physics|relax|long|normal|hal"
) | told_by(
    "Submit|Start|End|ElapsedRaw|State|AllocCPUS|ReqCPUS|NNodes|TimelimitRaw|ReqMem|MaxRSS|NTasks|"
    "TotalCPU",
    "2024-01-31T12:00:00|2024-01-31T12:05:00|2024-01-31T12:15:00|600|COMPLETED|1|1|1|60|4G|||05:00",
)

#: What rows of steps tell unless they say something else.
STEP = told_by(
    "JobID|User|JobName|Partition|QOS|Submit|TimelimitRaw|ReqMem|MaxRSS",
    "1.batch||batch|||2024-01-31T12:05:00|||20480K",
)

UTC = FormatOptions(zone="UTC")

NOON = "2024-01-31T12:00:00"


def text(*rows: dict[str, str], delimiter: str = "|", tail: str = "", end: str = "\n") -> bytes:
    """Rows as sacct writes them; columns are those of the first row. Each is a job or a step."""
    filled = []
    for row in rows:
        step = STEP if "." in row.get("JobID", "1").partition("[")[0] else {}
        filled.append(JOB | step | row)
    columns = list(filled[0])
    lines = [columns, *([row[name] for name in columns] for row in filled)]
    return "".join(delimiter.join(line) + tail + end for line in lines).encode()


def without(*columns: str, **row: str) -> bytes:
    """One job, told without some columns."""
    told = JOB | row
    names = [name for name in told if name not in columns]
    return f"{'|'.join(names)}\n{'|'.join(told[name] for name in names)}\n".encode()


def read(*rows: dict[str, str], zone: str | None = "UTC", queue: Any = "partition") -> Trace:
    """The trace of some rows."""
    return parse_sacct(text(*rows), "jobs.txt", FormatOptions(zone=zone, queue=queue))


def job(trace: Trace, place: int = 0) -> dict[str, float]:
    """All fields of one job."""
    return {name: float(trace[name][place]) for name in FIELDS}


def one(**row: str) -> dict[str, float]:
    """The fields of a file with one job."""
    return job(read(row))


def told(**row: str) -> dict[str, float]:
    """The fields of one job, of whose columns some are missing: those given as ``no``."""
    missing = [name for name, value in row.items() if value == "no"]
    kept = {name: value for name, value in row.items() if value != "no"}
    return job(parse_sacct(without(*missing, **kept), options=UTC))


def table(trace: Trace) -> list[list[float]]:
    """All fields of all jobs, job by job."""
    return [[job(trace, place)[name] for name in FIELDS] for place in range(len(trace))]


#: Every oddity at once: columns in another order and some that are not used, `-p` with its empty
#: last column, windows' line ends, a blank line, no last line end, Latin-1, a quote in a name,
#: two files put together. Times are those of Paris, in the night when clocks are put back (at
#: 01:00 UTC on 27 October 2024, so that 02:00 to 03:00 is shown twice).
ODD = (
    "State|ExitCode|JobID|JobIDRaw|User|UID|Account|JobName|Partition|Cluster|Submit|Eligible|"
    "Start|End|Elapsed|NCPUS|ReqCPUS|NNodes|Timelimit|ReqMem|MaxRSS|AveRSS|TotalCPU|\r\n"
    # a job of two nodes with memory by node, its steps, a time limit of more than a day
    'COMPLETED|0:0|100|100|ada|1000|physics|relax "fast"|long|hal|2024-10-26T20:00:00|Unknown|'
    "2024-10-26T21:00:00|2024-10-27T01:00:00|04:00:00|64|64|2|1-12:00:00|8Gn|||10-16:00:00|\r\n"
    "COMPLETED|0:0|100.batch|100.batch|||physics|batch||hal|2024-10-26T21:00:00|Unknown|"
    "2024-10-26T21:00:00|2024-10-27T01:00:00|04:00:00|32|32|1|||1.5G|1G|00:00:01|\r\n"
    "COMPLETED|0:0|100.extern|100.extern|||physics|extern||hal|2024-10-26T21:00:00|Unknown|"
    "2024-10-26T21:00:00|2024-10-27T01:00:00|04:00:00|64|64|2||||20K|00:00:00|\r\n"
    "COMPLETED|0:0|100.0|100.0|||physics|solve||hal|2024-10-26T21:00:00|Unknown|"
    "2024-10-26T21:00:00|2024-10-27T01:00:00|04:00:00|64|64|2|||2048M|2000M|10-15:59:59|\r\n"
    "\r\n"
    # two tasks of an array, and what is left of it, cancelled before it started
    "FAILED|1:0|101_1|102|zoë|1001|chemistry|scan|short|hal|2024-10-26T20:10:00|Unknown|"
    "2024-10-26T20:11:00|2024-10-26T20:12:30|00:01:30|1|1|1|UNLIMITED|2000Mc|||00:45.500|\r\n"
    "TIMEOUT|0:0|101_2|103|zoë|1001|chemistry|scan|short|hal|2024-10-26T20:10:00|Unknown|"
    "2024-10-26T20:11:00|2024-10-26T21:11:00|01:00:00|1|1|1|01:00:00|2000Mc|||59:00|\r\n"
    "CANCELLED by 1001|0:0|101_[3-8,10%2]|101|zoë|1001|chemistry|scan|short|hal|"
    "2024-10-26T20:10:00|Unknown|None|2024-10-26T20:30:00|00:00:00|0|1|1|Partition_Limit|2000Mc|||"
    "00:00:00|\r\n"
    # a job that lost its node and ran again
    "NODE_FAIL|0:0|110|110|bob|1002|physics|train|long|hal|2024-10-26T21:00:00|Unknown|"
    "2024-10-26T21:30:00|2024-10-26T22:00:00|00:30:00|4|4|1|04:00:00|16G|||00:10:00|\r\n"
    "OUT_OF_MEMORY|0:125|110|110|bob|1002|physics|train|long|hal|2024-10-26T22:00:05|Unknown|"
    "2024-10-26T22:10:05|2024-10-26T23:10:05|01:00:00|4|4|1|04:00:00|16G|||02:00:00|\r\n"
    # a heterogeneous job with a step of its second part
    "COMPLETED|0:0|120+0|120|ada|1000|physics|couple|long|hal|2024-10-26T23:00:00|Unknown|"
    "2024-10-26T23:30:00|2024-10-27T00:30:00|01:00:00|2|2|1|02:00:00|4G|||01:00:00|\r\n"
    "COMPLETED|0:0|120+1|121|ada|1000|physics|couple|gpu|hal|2024-10-26T23:00:00|Unknown|"
    "2024-10-26T23:30:00|2024-10-27T00:30:00|01:00:00|6|6|1|02:00:00|12G|||03:00:00|\r\n"
    "COMPLETED|0:0|120+1.0|121.0|||physics|couple||hal|2024-10-26T23:30:00|Unknown|"
    "2024-10-26T23:30:00|2024-10-27T00:30:00|01:00:00|6|6|1|||1024000K||03:00:00|\r\n"
    # steps alone; jobs that are not over; another file's header
    "COMPLETED|0:0|90.0|90.0|||physics|old||hal|2024-10-26T10:00:00|Unknown|"
    "2024-10-26T10:00:00|2024-10-26T20:00:00|10:00:00|6|6|1|||1024K||03:00:00|\r\n"
    "RUNNING|0:0|130|130|bob|1002|physics|train|long|hal|2024-10-27T00:00:00|Unknown|"
    "2024-10-27T00:00:00|Unknown|10:00:00|4|4|1|04:00:00|16G|||00:00:00|\r\n"
    "PENDING|0:0|131_[1-5]|131|bob|1002|physics|train|long|hal|2024-10-27T00:00:00|Unknown|"
    "Unknown|Unknown|00:00:00|0|4|1|04:00:00|16G|||00:00:00|\r\n"
    "State|ExitCode|JobID|JobIDRaw|User|UID|Account|JobName|Partition|Cluster|Submit|Eligible|"
    "Start|End|Elapsed|NCPUS|ReqCPUS|NNodes|Timelimit|ReqMem|MaxRSS|AveRSS|TotalCPU|\r\n"
    # the hour that is shown twice: submitted in the first, started in the second
    "COMPLETED|0:0|140|140||1003|(null)|night|long|hal|2024-10-27T02:50:00|Unknown|"
    "2024-10-27T02:10:00|2024-10-27T03:10:00|01:00:00|1K|1K|16|INVALID|0n|||00:00:00|\r\n"
    # cancelled while it waited, as older versions tell it
    "CANCELLED|0:0|150|150|ada|1000|physics|relax|long|hal|2024-10-27T08:00:00|Unknown|"
    "2024-10-27T09:00:00|2024-10-27T09:00:00|00:00:00|0|8|1|10:00|500|||00:00:00|"
).encode("latin-1")
