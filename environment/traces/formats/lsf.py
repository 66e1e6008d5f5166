r"""LSF's ``lsb.acct``: one event per line, values separated by blanks, texts in double quotes.

::

    "JOB_FINISH" "10.1" 1706706300 7 1001 0 8 1706702400 0 0 1706702700 "ada" "normal"
        "span[hosts=1]" "" "" "login" "/home/ada" "" "out" "err" "1706702400.7" 0 1 "8*n1" 64 60.0
        "relax" "./relax ""a b"" c" 28000.5 12.25 ...                    (in one line)

======================  ==========================================================================
number                  jobId, if there are no arrays; ``7`` or ``7[4]``, element 4 of an array, is
                        kept in ``extra``
submit, wait, run       submitTime, startTime - submitTime, event time - startTime; a job that never
                        started waited until the event. 0 is unknown
allocated_processors    execHosts, each once per processor, or as ``8*n1``
average_cpu             (ru_utime + ru_stime) / allocated processors
memory                  maxRMem, kB / allocated processors; 0 is unknown
requested_processors    numProcessors
requested_time          runLimit, s (bsub -W)
requested_memory        -1: whether ``rusage[mem=...]`` is for a job, host or processor depends on
                        the site
status                  5 if exitInfo says that owner or administrator killed the job; 1 if jStatus
                        is DONE (64), else 0
user, queue             userName, queue
executable              jobName without the ``[1-10]`` of an array, else the first word of command
group                   -1
======================  ==========================================================================

``extra`` has final_state (``TERM_RUNLIMIT`` ..., or what the status says), exit_code, node_list,
nodes, suspended (s; the time between start and end that is not in runTime), restarts, reservation,
dependency, project and gpus_per_node (``rusage[ngpus_physical=2]`` in effectiveResReq, else in
resReq; ``bsub -gpu num=2`` becomes that, and counts on each host). A job that is requeued has a
record for each run. Other events, such as JOB_RESIZE, are ignored. Records of old versions end
earlier; values after maxRSwap are optional.

Source: IBM Spectrum LSF 10.1, lsb.acct and bacct (termination reasons). Unlike there, runLimit is
before options3, and an entry of hostRusage has six values, as in published records of version 9.11
and 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.header import decode
from hpcrowd.environment.traces.formats.common.accounting import (
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
from hpcrowd.environment.traces.formats.common.files import rows_in
from hpcrowd.environment.traces.trace import Trace

#: The values of a record up to the lists of hosts, and after them those that all versions have.
BEGIN = (
    "version", "event time", "jobId", "userId", "options", "numProcessors", "submitTime",
    "beginTime", "termTime", "startTime", "userName", "queue", "resReq", "dependCond",
    "preExecCmd", "fromHost", "cwd", "inFile", "outFile", "errFile", "jobFile",
)  # fmt: skip
MIDDLE = (
    "jStatus", "hostFactor", "jobName", "command",
    "ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_ismrss", "ru_idrss", "ru_isrss",
    "ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock", "ru_oublock", "ru_ioch", "ru_msgsnd",
    "ru_msgrcv", "ru_nsignals", "ru_nvcsw", "ru_nivcsw", "ru_exutime",
    "mailUser", "projectName", "exitStatus", "maxNumProcessors", "loginShell", "timeEvent", "idx",
    "maxRMem", "maxRSwap",
)  # fmt: skip

#: Later versions: up to the submission extension, and after the use of hosts.
LATER = (
    "inFileSpool", "commandSpool", "rsvId", "sla", "exceptMask", "additionalInfo", "exitInfo",
    "warningAction", "warningTimePeriod", "chargedSAAP", "licenseProject", "app", "postExecCmd",
    "runtimeEstimation", "jobGroupName", "requeueEvalues", "options2", "resizeNotifyCmd",
    "lastResizeTime", "rsvId2", "jobDescription",
)  # fmt: skip
LAST = (
    "runLimit", "options3", "avgMem", "effectiveResReq", "srcCluster", "srcJobId", "dstCluster",
    "dstJobId", "forwardTime", "flow_id", "acJobWaitTime", "totalProvisionTime", "outdir",
    "runTime",
)  # fmt: skip

#: The values that are texts, which are written in quotes.
TEXTS = frozenset((
    "version", "userName", "queue", "resReq", "dependCond", "preExecCmd", "fromHost", "cwd",
    "inFile", "outFile", "errFile", "jobFile", "jobName", "command", "mailUser", "projectName",
    "loginShell", "timeEvent", "inFileSpool", "commandSpool", "rsvId", "sla", "additionalInfo",
    "warningAction", "chargedSAAP", "licenseProject", "app", "postExecCmd", "jobGroupName",
    "requeueEvalues", "resizeNotifyCmd", "rsvId2", "jobDescription", "effectiveResReq",
    "srcCluster", "dstCluster", "flow_id", "outdir",
))  # fmt: skip

#: Values of a record that are not read.
NOT_READ = (
    "beginTime", "termTime", "resReq but for GPUs", "askedHosts", "files, commands and directories",
    "ru_maxrss to ru_exutime", "maxNumProcessors", "maxRSwap", "sla", "app", "jobGroupName",
    "avgMem", "and others",
)  # fmt: skip

#: jStatus of a job that ended with and without an error.
EXIT, DONE = 32, 64

#: exitInfo: why LSF ended a job.
REASONS_OF_END = {
    1: "TERM_PREEMPT", 2: "TERM_WINDOW", 3: "TERM_LOAD", 4: "TERM_OTHER", 5: "TERM_RUNLIMIT",
    6: "TERM_DEADLINE", 7: "TERM_PROCESSLIMIT", 8: "TERM_FORCE_OWNER", 9: "TERM_FORCE_ADMIN",
    10: "TERM_REQUEUE_OWNER", 11: "TERM_REQUEUE_ADMIN", 12: "TERM_CPULIMIT", 13: "TERM_CHKPNT",
    14: "TERM_OWNER", 15: "TERM_ADMIN", 16: "TERM_MEMLIMIT", 17: "TERM_EXTERNAL_SIGNAL",
    18: "TERM_RMS", 19: "TERM_ZOMBIE", 20: "TERM_SWAP", 21: "TERM_THREADLIMIT",
    23: "TERM_BUCKET_KILL", 25: "TERM_CWD_NOTEXIST", 26: "TERM_REMOVE_HUNG_JOB",
    27: "TERM_ORPHAN_SYSTEM",
}  # fmt: skip

#: Those after which a job is cancelled, and those after which it runs again.
CANCELLED, REQUEUED = (8, 9, 14, 15), (10, 11)

#: Codes by reason, for written records.
CODES = {name: code for code, name in REASONS_OF_END.items() if code not in REQUEUED}

#: The project of jobs that name none, and the host of written records.
PROJECT, OURS = "default", "hpcrowd"

REASONS = {
    "average_cpu": "finer than a microsecond in total",
    "memory": "finer than a kB in total, or unknown like 0",
    "status": "a record shows only whether a job was killed, failed or neither",
    "executable": "brackets at the end are those of an array, or the name means unknown",
}

_EVENT = re.compile(rb'"[A-Z_]{3,40}" "[0-9.]{1,20}" [0-9]{1,12} ')
_WORD = re.compile(r'"[^"]*(?:""[^"]*)*"|[^\s"]+')
_ID = re.compile(r"(0|[1-9][0-9]{0,14})(\[[1-9][0-9]{0,8}\])?")
_GPUS = re.compile(r"\bngpus_physical=([0-9]{1,9})\b(?:\.0*)?")
_ARRAY = re.compile(r"\[[^\[\]]*\](%[0-9]+)?$")


def text_of(word: str) -> str:
    """Return a text without its quotes, or a word that has none as it is."""
    return word[1:-1].replace('""', '"') if word.startswith('"') else word


def quoted(text: str) -> str:
    """Return a text as :func:`text_of` reads it."""
    return '"' + text.replace('"', '""') + '"'


def processors_of(host: str) -> int:
    """Return the processors in an entry of execHosts: 8 for ``8*n1``, else 1."""
    times, star, _ = host.partition("*")
    return max(processors(times), 0) if star else 1


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if not data.strip():
        raise TraceError(f"{source}: is empty; lsb.acct has one event per line")
    jobs = Jobs(OddValues(source, options.strict))
    for line, raw in enumerate(data.split(b"\n"), start=1):
        record = raw.strip()
        if not record or record.startswith(b"#"):
            continue
        text = decode(record)
        words = _WORD.findall(text)
        unclosed = text.count('"') % 2
        if len(words) < 3 or words[0][0] != '"' or unclosed or "\0" in text:
            rule = "not an event of LSF: a type in quotes, then values separated by blanks"
            jobs.odd.add(line, None, record, rule, left_out=True)
        elif words[0] == '"JOB_FINISH"':
            values = Values(jobs.odd, line)
            with suppress(LeftOut):
                fields, hosts = _values(words[1:], values)
                job = _job(fields, hosts, values)
                jobs.add((job.identifier, fields["userName"]), job)
    return jobs.trace(options, "lsb.acct of LSF", NOT_READ)


def _values(words: Sequence[str], values: Values) -> tuple[dict[str, str], list[str]]:
    """Return the values of a record by name, and the hosts that it ran on."""
    fields: dict[str, str] = {}
    place = 0

    def take(names: Sequence[str]) -> None:
        nonlocal place
        found = words[place : place + len(names)]
        fields.update(zip(names, map(text_of, found), strict=False))
        place += len(found)

    def take_list(name: str) -> list[str]:
        nonlocal place
        count = values.needed(name, words[place] if place < len(words) else "", whole)
        place += 1 + max(count, 0)
        return [text_of(word) for word in words[place - max(count, 0) : place]]

    take(BEGIN)
    take_list("numAskedHosts")
    hosts = take_list("numExHosts")
    take(MIDDLE)
    texts = [name in TEXTS for name in BEGIN]
    rule = ""
    if len(fields) < len(BEGIN) + len(MIDDLE):
        rule = f"{len(words)} values; a finished job has more, up to maxRSwap"
    elif [word[0] == '"' for word in words[: len(BEGIN)]] != texts:
        rule = "not a finished job: its texts are in quotes, and its numbers are not"
    if rule:
        values.odd.add(values.line, None, " ".join(words), rule, left_out=True)
        raise LeftOut
    take(LATER)
    if place + 1 < len(words):
        place += 1 + 2 * max(values.needed("submitExt", words[place], whole), 0)
    if place + 1 < len(words):
        count = max(values.needed("numHostRusage", words[place], whole), 0)
        for each in (6, 5):  # as logged, and as documented
            rest = words[place + 1 + count * each :]
            if len(rest) > 3 and [word[0] == '"' for word in rest[:4]] == [False] * 3 + [True]:
                fields |= zip(LAST, map(text_of, rest), strict=False)
                break
    return fields, hosts


def _job(fields: dict[str, str], hosts: list[str], values: Values) -> Job:
    """Return the job in a record."""
    number, element = (values.needed(name, fields[name], whole) for name in ("jobId", "idx"))
    submit, start, end = (
        values.read(name, fields[name], unix_time)
        for name in ("submitTime", "startTime", "event time")
    )
    identifier = f"{number}[{element}]" if element > 0 else str(number)
    job = Job(identifier, submit, start, end)
    status = values.read("jStatus", fields["jStatus"], whole, 0)
    why = values.read("exitInfo", fields.get("exitInfo", "0"), whole, 0)
    held = [values.read("execHosts", host, processors_of, -1) for host in hosts]
    allocated = -1 if -1 in held else sum(held)
    requested = values.read("numProcessors", fields["numProcessors"], processors, -1)
    job.fields = {
        "allocated_processors": allocated if allocated > 0 else -1,
        "requested_processors": requested,
        "status": 5 if why in CANCELLED else 1 if status & DONE else 0 if status & EXIT else -1,
    }
    limit = values.read("runLimit", fields.get("runLimit", "0"), whole, 0)
    if limit > 0:
        job.fields["requested_time"] = limit
    user, system = (
        values.read(name, fields[name], decimal, -1) for name in ("ru_utime", "ru_stime")
    )
    if user >= 0:
        job.average("average_cpu", user + max(system, 0))
    memory = values.read("maxRMem", fields["maxRMem"], whole, 0)
    if memory > 0:
        job.average("memory", memory)
    command = fields["command"].split(None, 1)
    name = _ARRAY.sub("", fields["jobName"]) or (command[0] if command else "")
    job.words = {"user": fields["userName"], "queue": fields["queue"], "executable": name}
    names = list(dict.fromkeys(host.rpartition("*")[2] for host in hosts))
    job.extra = {
        "final_state": REASONS_OF_END.get(why, ""),
        "node_list": ",".join(names),
        "nodes": str(len(names)) if names else "",
        "reservation": fields.get("rsvId") or fields.get("rsvId2", ""),
        "dependency": fields["dependCond"],
        "project": "" if fields["projectName"] == PROJECT else fields["projectName"],
    }
    gpus = _GPUS.search(fields.get("effectiveResReq", "")) or _GPUS.search(fields["resReq"])
    if gpus and int(gpus[1]):
        job.extra["gpus_per_node"] = str(int(gpus[1]))
    if start is not None:
        code = values.read("exitStatus", fields["exitStatus"], whole, 0)
        if code:
            job.extra["exit_code"] = str(code >> 8 if code >= 256 else code)
        active = values.read("runTime", fields.get("runTime", "-1"), whole, -1)
        if end is not None and 0 <= active < end - start:
            job.extra["suspended"] = str(end - start - active)
    job.runs_again = why in REQUEUED
    return job


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    return generated(LSF, trace, lost, options, _record, _ID, REASONS)


def _record(job: Written) -> str:
    """Return the record of a job."""
    number, _, element = job.identifier.partition("[")
    start, end = job.start, job.end
    if job.run < 0:  # it never started, and waited until the event
        start, end = 0, start
    elif not start:  # no record holds a run time without a start
        start, end = job.submit, job.submit + job.run if job.submit else 0
    why = CODES.get(job.extra.get("final_state", ""), 0)
    if job.status == 5:
        why = why if why in CANCELLED else 14
    elif job.status == 1 or why in CANCELLED:
        why = 0
    code, idle = job.extra.get("exit_code", ""), job.extra.get("suspended", "")
    failed = 0 if job.status == 1 else 1 if job.status == 0 else 130
    host = (job.extra.get("node_list") or OURS).split(",")
    fields = {
        "version": "10.1", "event time": end, "jobId": number, "numProcessors": job.requested,
        "submitTime": job.submit, "startTime": start, "userName": job.words["user"],
        "queue": job.words["queue"], "dependCond": job.extra.get("dependency", ""),
        "fromHost": OURS, "jStatus": {1: DONE, 0: EXIT, 5: EXIT}.get(job.status, 0),
        "hostFactor": "1.0", "jobName": job.words["executable"],
        "ru_utime": f"{job.cpu:.6f}", "ru_stime": "0.000000" if job.cpu >= 0 else "-1.000000",
        "projectName": job.extra.get("project") or PROJECT,
        "exitStatus": (int(code) if re.fullmatch("[0-9]{1,3}", code) else failed) << 8,
        "maxNumProcessors": job.requested, "idx": element.rstrip("]") or 0,
        "maxRMem": max(job.memory // 1024, 0), "rsvId": job.extra.get("reservation", ""),
        "exitInfo": why, "runLimit": max(job.limit, 0),
        "runTime": max(job.run - (int(idle) if re.fullmatch("[0-9]{1,9}", idle) else 0), 0),
    }  # fmt: skip

    def words(names: Sequence[str]) -> list[str]:
        return [
            quoted(str(fields.get(name, ""))) if name in TEXTS else str(fields.get(name, 0))
            for name in names
        ]

    hosts = [quoted(f"{job.allocated}*{host[0]}")] if job.allocated > 0 else []
    return " ".join([
        '"JOB_FINISH"', *words(BEGIN), "0", str(len(hosts)), *hosts, *words(MIDDLE), *words(LATER),
        "0", "0", *words(LAST),
    ]) + "\n"  # fmt: skip


def _looks_like(head: bytes) -> bool:
    return any(map(_EVENT.match, rows_in(head, b"#")))  # commands may have several lines


#: LSF's lsb.acct.
LSF = Format("lsf", "lsb.acct of LSF", (".lsf", "lsb.acct"), _looks_like, _parse, _generate)

parse_lsf, generate_lsf = LSF.parse, LSF.generate
read_lsf, write_lsf = LSF.read, LSF.write
