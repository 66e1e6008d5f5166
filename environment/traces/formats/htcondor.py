r"""The history of HTCondor: a ClassAd for each job that has left the queue.

::

    ClusterId = 7
    ProcId = 0
    Owner = "ada"
    QDate = 1706702400
    ...
    *** Offset = 0 ClusterId = 7 ProcId = 0 Owner = "ada" CompletionDate = 1706706300

That is the history file, and, with a blank line instead of the last one, what ``condor_history -l``
prints. Names of attributes may be in upper or lower case; those that are not listed are ignored.

======================  ==========================================================================
number                  ClusterId, if all clusters have one job; ``7.0`` is kept in ``extra``
submit                  QDate
wait                    JobCurrentStartDate (else JobStartDate) - QDate: until the last start; of a
                        job that never started, EnteredCurrentStatus - QDate
run                     CompletionDate (else EnteredCurrentStatus) - start; RemoteWallClockTime for
                        a job that was removed while it waited again or was held
allocated_processors    CpusProvisioned, on each host of a job of the parallel universe
average_cpu             (RemoteUserCpu + RemoteSysCpu) / processors
memory                  ResidentSetSize_RAW, else ResidentSetSize, kB / processors
requested_processors    RequestCpus, on each host of a job of the parallel universe
requested_time          AllowedJobDuration, else AllowedExecuteDuration, s; else MaxWallTime, min
requested_memory        RequestMemory, MB / RequestCpus
status                  JobStatus: 3 (removed) 5; 4 (completed) 1 if ExitCode is 0, else 0
user, group             Owner, AcctGroup
executable              Cmd
queue, partition        -1: HTCondor has none
======================  ==========================================================================

Jobs of the parallel universe (JobUniverse 11) run on MaxHosts, else MinHosts hosts at once, the
``machine_count`` of their submit file; what they request is for each of them. They held
CurrentHosts unless that is 0, as it is after their end.

``extra`` has final_state (what the status says), exit_code, node_list, suspended (s), restarts,
priority and project. Jobs with another JobStatus have not ended and are dropped. An expression,
such as ``RequestMemory = ifthenelse(...)``, is not evaluated: the value is unknown.

Source: HTCondor Manual 23, job ClassAd attributes and condor_history; MaxWallTime (min) from the
manual of HTCondor-CE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.accounting import (
    RAN_AGAIN,
    Job,
    Jobs,
    Values,
    Written,
    decimal,
    generated,
    processors,
    unix_time,
    whole,
)
from hpcrowd.environment.traces.formats.common.base import (
    Format,
    FormatOptions,
    LeftOut,
    Losses,
    OddValues,
)
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT
from hpcrowd.environment.traces.trace import Trace

#: The values of JobStatus of jobs that have left the queue, and of those that did not run.
REMOVED, COMPLETED, NOT_RUNNING = 3, 4, (1, 5)

#: The parallel universe, and the numbers of hosts, the one that counts first.
PARALLEL, HOSTS = 11, ("maxhosts", "minhosts")

#: Limits of the run time and their units, s, the one that counts first.
LIMITS = {"allowedjobduration": 1, "allowedexecuteduration": 1, "maxwalltime": 60}

#: Texts and numbers that become columns of :attr:`Trace.extra`: their attribute.
KEPT = {"project": "projectname", "priority": "jobprio", "suspended": "cumulativesuspensiontime"}

#: Values of an ad that are not read: there are hundreds of attributes.
NOT_READ = ("attributes that the guide does not list",)

#: Between the ads of a file, and why a job is dropped.
BANNER, NOT_ENDED = "***", "JobStatus: not ended"

REASONS = {
    "allocated_processors": "not a whole number of processors",
    "average_cpu": "finer than a microsecond in total",
    "memory": "finer than a byte",
    "requested_time": "not whole seconds",
    "requested_memory": "not whole bytes, or 0",
    "status": "a job is completed, failed or removed",
}

_ATTRIBUTE = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9.]*)\s*=\s*(?![=?!])(.*)")
_ID = re.compile(r"(0|[1-9][0-9]{0,14})\.(0|[1-9][0-9]{0,14})")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_AD = re.compile(rb"\s*(?:\*\*\*[^\n]*\n\s*)?[A-Za-z_]\w*\s*=\s*[^=\s]")
_JOB = re.compile(rb"^\s*(?:ClusterId|QDate|JobStatus)\s*=", re.MULTILINE | re.IGNORECASE)


class _Ad:
    """The attributes of a job: value and line by name in lower case."""

    def __init__(self, odd: OddValues) -> None:
        self.odd = odd
        self.found: dict[str, tuple[str, int]] = {}

    def number(self, name: str, convert: Callable[[str], Any] = decimal) -> Any:
        """Return a number; None if it is missing, undefined or an expression."""
        text, line = self.found.get(name, ("", 0))
        if not text or text[0].isalpha() or text[0] == "(":
            return None
        number = re.sub(r"\.0+$", "", text)  # ClassAds may have whole numbers as 3.0
        value = Values(self.odd, line).read(name, number, convert)
        if value is None:  # an odd value counts once
            del self.found[name]
        return value

    def identifier(self) -> str:
        """Return the job's number in the manager.

        Raises LeftOut if it cannot be read.
        """
        found = []
        for name in ("clusterid", "procid"):
            text, line = self.found.get(name, ("0", 0))
            found.append(Values(self.odd, line).needed(name, text, _place))
        return f"{found[0]}.{found[1]}"

    def hosts(self, *names: str) -> int:
        """Return the first known number of hosts of a parallel job; 1 for another job."""
        if self.number("jobuniverse", whole) != PARALLEL:
            return 1
        return next((count for name in names if (count := self.number(name, _place))), 1)

    def text(self, name: str) -> str:
        """Return a text; empty if it is missing, undefined or an expression."""
        text, line = self.found.get(name, ("", 0))
        if not text or text[0].isalpha() or text[0] == "(":
            return ""
        return str(Values(self.odd, line).read(name, text, unquoted, ""))


def unquoted(text: str) -> str:
    """Return a text without its quotes; ``ValueError`` with the rule if it has none."""
    if not _TEXT.fullmatch(text):
        raise ValueError("not a text in double quotes")
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def quoted(text: str) -> str:
    """Return a text as :func:`unquoted` reads it."""
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if not data.strip():
        raise TraceError(f"{source}: is empty; a history of HTCondor has ClassAds of jobs")
    jobs = Jobs(OddValues(source, options.strict))
    for ad in _ads(data, jobs.odd):
        status = ad.number("jobstatus", _place)
        if status not in (REMOVED, COMPLETED):
            jobs.dropped[NOT_ENDED] += 1
            continue
        try:
            job = _job(ad, ad.identifier(), status)
        except LeftOut:
            continue
        jobs.repaired[RAN_AGAIN] += "restarts" in job.extra
        jobs.add((job.identifier, ad.text("globaljobid")), job)
    return jobs.trace(options, "a history of HTCondor", NOT_READ)


def _place(text: str) -> int:
    return max(whole(text), 0)


def _on_hosts(hosts: int, text: str) -> int:
    """Return the processors of all hosts of a job from those of one."""
    return processors(str(whole(text) * hosts))


def _kilobytes(text: str) -> float:
    """Return a number of MB in kB."""
    size = decimal(text) * 1024
    if size > LARGEST_EXACT:
        raise ValueError(f"more than {LARGEST_EXACT // 1024:,} MB")
    return size


def _ads(data: bytes, odd: OddValues) -> Iterator[_Ad]:
    """Yield the ads of a history, which end with a blank line or a banner."""
    ad = _Ad(odd)
    for line, raw in enumerate(data.split(b"\n"), start=1):
        text = decode(raw.strip())
        match = _ATTRIBUTE.fullmatch(text)
        if not text or text.startswith(BANNER):
            if ad.found:
                yield ad
            ad = _Ad(odd)
        elif not match or "\0" in text:
            rule = "not an attribute of a ClassAd: name = value"
            odd.add(line, None, raw.strip(), rule, left_out=True)
        else:
            ad.found[match[1].lower()] = match[2].strip(), line
    if ad.found:
        yield ad


def _job(ad: _Ad, identifier: str, status: int) -> Job:
    """Return the job of an ad."""
    start = ad.number("jobcurrentstartdate", unix_time) or ad.number("jobstartdate", unix_time)
    left = ad.number("enteredcurrentstatus", unix_time)
    end = ad.number("completiondate", unix_time) or left
    job = Job(identifier, ad.number("qdate", unix_time), start, end)
    elapsed = ad.number("remotewallclocktime")
    idle = status == REMOVED and ad.number("lastjobstatus", _place) in NOT_RUNNING
    if start is not None and (idle or end is None):
        job.end = None
        if elapsed is not None and elapsed >= 0:
            job.fields["run"] = elapsed
    code, signal = ad.number("exitcode"), ad.found.get("exitbysignal", ("", 0))[0].lower()
    fine = status == COMPLETED and not code and signal != "true"
    job.fields["status"] = 5 if status == REMOVED else 1 if fine else 0
    for field, name, hosts in (
        ("allocated_processors", "cpusprovisioned", ad.hosts("currenthosts", *HOSTS)),
        ("requested_processors", "requestcpus", ad.hosts(*HOSTS)),
    ):
        count = ad.number(name, partial(_on_hosts, hosts))
        job.fields[field] = -1 if count is None else count
    limits = (
        (ad.number(name), unit) for name, unit in LIMITS.items() if ad.number(name) is not None
    )
    limit, unit = next(limits, (-1, 1))
    if limit >= 0:
        job.fields["requested_time"] = limit * unit
    requested = ad.number("requestmemory", _kilobytes)
    if requested is not None and requested > 0:
        of = ad.number("requestcpus", processors)
        job.fields["requested_memory"] = requested / max(of or 1, 1)
    user, system = ad.number("remoteusercpu"), ad.number("remotesyscpu")
    if user is not None and user >= 0:
        job.average("average_cpu", user + max(system or 0, 0))
    memory = ad.number("residentsetsize_raw")
    memory = ad.number("residentsetsize") if memory is None else memory
    if memory is not None and memory >= 0:
        job.average("memory", memory)
    job.words = {"user": ad.text("owner"), "group": ad.text("acctgroup"),
                 "executable": ad.text("cmd")}  # fmt: skip
    job.extra = {
        "exit_code": f"{code:.0f}" if code else "",
        "node_list": ad.text("lastremotehost").rpartition("@")[2],
        "project": ad.text("projectname"),
    }
    for column in ("priority", "suspended"):
        if number := ad.number(KEPT[column]):
            job.extra[column] = f"{number:.0f}"
    starts = ad.number("numjobstarts", processors)
    if starts is not None and starts > 1:
        job.extra["restarts"] = str(starts - 1)
    return job


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    return generated(HTCONDOR, trace, lost, options, _ad, _ID, REASONS)


def _ad(job: Written) -> str:
    """Return the ad of a job, with its banner."""
    cluster, _, proc = job.identifier.partition(".")
    completed = job.status != 5
    start = job.start if job.run >= 0 else 0
    end = job.end or (job.start if job.run < 0 else 0)
    bad = job.status in (0, 4)
    code = job.extra.get("exit_code", "")
    good_code = re.fullmatch("-?[0-9]{1,9}", code) and (int(code) != 0) == bad
    if completed and not good_code:
        code = "1" if bad else "0"
    attributes: dict[str, object] = {
        "ClusterId": cluster, "ProcId": proc or 0, "QDate": job.submit,
        "JobStatus": COMPLETED if completed else REMOVED, "EnteredCurrentStatus": end,
        "CompletionDate": end if completed else 0, "ExitBySignal": "false",
    }  # fmt: skip
    if job.run >= 0:
        attributes |= {"JobCurrentStartDate": start, "RemoteWallClockTime": f"{job.run}.0"}
    if completed or re.fullmatch("-?[0-9]{1,9}", code):
        attributes["ExitCode"] = code
    for name, value in (
        ("RequestCpus", job.requested), ("CpusProvisioned", job.allocated),
        ("AllowedJobDuration", job.limit),
    ):  # fmt: skip
        if value >= 0:
            attributes[name] = value
    requested = job.requested_memory * max(job.requested, 1)
    if 0 < requested <= LARGEST_EXACT:
        attributes["RequestMemory"] = requested / 2**20
    if job.cpu >= 0:
        attributes |= {"RemoteUserCpu": f"{job.cpu:.6f}", "RemoteSysCpu": "0.0"}
    if job.memory >= 0:
        attributes["ResidentSetSize_RAW"] = job.memory / 1024
    attributes |= {
        name: quoted(text) for name, text in (
            ("Owner", job.words["user"]), ("AcctGroup", job.words["group"]),
            ("Cmd", job.words["executable"]), ("ProjectName", job.extra.get("project", "")),
            ("LastRemoteHost", job.extra.get("node_list", "")),
        ) if text
    }  # fmt: skip
    for column, name, least in (
        ("priority", "JobPrio", 0), ("suspended", "CumulativeSuspensionTime", 0),
        ("restarts", "NumJobStarts", 1),
    ):  # fmt: skip
        if re.fullmatch("-?[1-9][0-9]{0,8}", job.extra.get(column, "")):
            attributes[name] = int(job.extra[column]) + least
    lines = [f"{name} = {value}\n" for name, value in attributes.items()]
    return "".join(lines) + f"{BANNER} Offset = 0 ClusterId = {cluster} ProcId = {proc or 0}\n"


def _looks_like(head: bytes) -> bool:
    return _AD.match(head) is not None and _JOB.search(head) is not None


#: Histories of HTCondor.
HTCONDOR = Format(
    "htcondor",
    "history of HTCondor",
    (".htcondor",),
    _looks_like,
    _parse,
    _generate,
)

parse_htcondor, generate_htcondor = HTCONDOR.parse, HTCONDOR.generate
read_htcondor, write_htcondor = HTCONDOR.read, HTCONDOR.write
