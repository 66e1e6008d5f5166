"""The log of Slurm's plugin jobcomp/filetxt: a line of ``KEY=VALUE`` for each job that has ended.

::

    JobId=501 UserId=ann(1001) GroupId=grp(100) Name=two words JobState=COMPLETED Partition=p
        TimeLimit=60 StartTime=2024-01-31T08:00:10 EndTime=2024-01-31T08:10:10 NodeList=n1
        NodeCnt=1 ProcCnt=4 ... SubmitTime=2024-01-31T08:00:00 ... ExitCode=0:0   (in one line)

It has neither steps nor what jobs used. Names may have blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.odd_values import OddValues
from hpcrowd.environment.traces.formats.slurm.records import COLUMNS, word_in

#: Columns of sacct and the keys of their values.
KEYS = {
    "Account": "Account", "Partition": "Partition", "QOS": "QOS", "Cluster": "Cluster",
    "Submit": "SubmitTime", "Eligible": "EligibleTime", "Start": "StartTime", "End": "EndTime",
    "State": "JobState", "AllocCPUS": "ProcCnt", "ReqCPUS": "ProcCnt", "NNodes": "NodeCnt",
    "TimelimitRaw": "TimeLimit", "AllocTRES": "Tres", "NodeList": "NodeList",
    "Reservation": "ReservationName", "ExitCode": "ExitCode",
}  # fmt: skip

_BEGIN = re.compile(rb"\s*JobId=\d+ UserId=\S+ GroupId=\S+ Name=")
_LINE = re.compile(r"JobId=(\S+) UserId=(\S*?)(?:\(\d+\))? GroupId=\S* Name=(.*?) (JobState=.*)")
_PAIR = re.compile(r"(\w+)=(.*?)(?= \w+=|$)")
_MEMORY = re.compile(r"(?:^|,)mem=([^,]+)")


def is_completions(head: bytes) -> bool:
    """Return whether a text is such a log."""
    return _BEGIN.match(head) is not None


def completions_in(data: bytes, odd: OddValues) -> Iterator[dict[str, str]]:
    """Yield the rows of ``sacct`` that the lines of a log become."""
    for line, raw in enumerate(data.splitlines(), start=2):  # as the rows of a list of jobs
        text = decode(raw).strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            odd.add(line, None, raw, "not JobId, UserId, GroupId, Name and JobState", left_out=True)
            continue
        known = dict(_PAIR.findall(match[4]))
        row = dict.fromkeys(COLUMNS, "")
        row |= {name: word_in(known.get(key, "")) for name, key in KEYS.items()}
        memory = _MEMORY.search(row["AllocTRES"])
        row |= {"JobID": match[1], "User": word_in(match[2]), "JobName": word_in(match[3]),
                "ReqMem": memory[1] if memory else ""}  # fmt: skip
        if row["NodeList"] in ("", "(null)"):
            row["NodeList"] = "None assigned"
        yield row
