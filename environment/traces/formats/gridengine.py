r"""The accounting file of Grid Engine: one record per line, 45 fields separated by colons.

::

    # Version: 8.1.9
    all.q:n1:physics:ada:relax:7:sge:0:1706702400:1706702700:1706706300:0:0:3600:...
        :NONE:defaultdepartment:mpi:8:0:28000.5:1.2:0.1:-l h_rt=7200,h_vmem=4G -pe mpi 8:0.0
        :NONE:4294967296.0:0:0                                           (in one line)

======================  ==========================================================================
number                  job_number, if there are no arrays; ``7`` or ``7.4``, task 4 of an array,
                        is kept in ``extra``
submit, wait, run       submission_time, start_time - submission_time, end_time - start_time; 0 is
                        unknown. ru_wallclock counts where these are unknown or backward; another
                        ru_wallclock is counted
allocated_processors    slots
average_cpu             cpu / slots; 0 is unknown
memory                  maxvmem in kB / slots: virtual memory; 0 is unknown
requested_processors    ``-pe NAME N`` in category, 1 without a parallel environment; of a range the
                        slots that were granted
requested_time          ``h_rt`` in category, else ``s_rt``
requested_memory        ``h_vmem`` in category, else ``m_mem_free``, ``mem_free`` or
                        ``virtual_free``: per slot
status                  5 if qdel_info names someone, 1 if failed and exit_status are 0, else 0
user, group             owner, group
executable, queue       job_name, qname
======================  ==========================================================================

``extra`` has final_state (``failed 37``, or what the status says), exit_code, node_list, restarts,
priority, reservation, project (project, else account) and gpus (``gpu`` in category).

- Tasks of parallel jobs (pe_taskid) are not jobs: their CPU time and memory are added to the job.
- A job that is run again has a record for each run. Except for those of failed starts, they have
  the time of the rescheduling as submission, or 0: the first one known counts.
- Jobs that are deleted before they start have no record, and jobs deleted while they run look like
  killed ones, except in Univa Grid Engine.
- A job name with colons is put together if the other fields can be read in one way only.
- The output of ``qacct -j`` is read, too: a name and a value a line, times in the zone given.
- Univa Grid Engine has more fields, of which qdel_info is read, and times in ms.

Source: man pages accounting(5), sge_status(5) and sge_types(1) of Son of Grid Engine 8.1.9, whose
records were compared; for fields from 46 on, accounting(5) of Univa Grid Engine 8.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any

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
    NO_ZONE,
    Format,
    FormatOptions,
    LeftOut,
    Losses,
    OddValues,
)
from hpcrowd.environment.traces.formats.common.files import HEAD, mostly, rows_in
from hpcrowd.environment.traces.headers import LATEST, parse_zone
from hpcrowd.environment.traces.trace import LINES, Trace

#: The fields of a record; old versions end with maxvmem, Univa's go on.
FIELD_NAMES = (
    "qname", "hostname", "group", "owner", "job_name", "job_number", "account", "priority",
    "submission_time", "start_time", "end_time", "failed", "exit_status", "ru_wallclock",
    "ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_ismrss", "ru_idrss", "ru_isrss",
    "ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv",
    "ru_nsignals", "ru_nvcsw", "ru_nivcsw", "project", "department", "granted_pe", "slots",
    "task_number", "cpu", "mem", "io", "category", "iow", "pe_taskid", "maxvmem", "arid",
    "ar_sub_time", "job_class", "qdel_info",
)  # fmt: skip

#: Forms of fields by which a record is known whose job name has colons; priorities are from -1023
#: to 1024.
FORMS = {
    **dict.fromkeys(("submission_time", "start_time", "end_time"), "0|[0-9]{9,13}"),
    **dict.fromkeys(("job_number", "failed", "exit_status", "slots", "task_number"), "[0-9]+"),
    **dict.fromkeys(("ru_wallclock", "cpu"), r"[0-9]+(?:\.[0-9]+)?"),
    "priority": "-?[0-9]{1,4}",
}

#: Fewest fields of a record, those up to maxvmem, and fields that are written without qdel_info.
FEWEST, USUAL = 43, 45

#: Values of a record that are not read.
NOT_READ = ("ru_utime to ru_nivcsw", "department", "mem", "io", "iow", "ar_sub_time")

#: The word for nothing in a field, and the account of jobs that name none.
NONE, ACCOUNT = "NONE", "sge"

#: Codes of ``failed`` of a job that has ended for good: with the others it may run again.
ENDED = frozenset((0, 12, 13, 14, 15, 16, 17, 37, 100))

#: The code for a job that was killed after it had started.
KILLED = 100

#: Bytes in a unit of memory: sge_types(1), memory_specifier.
UNITS = {"": 1, "k": 1000, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30,
         "t": 10**12, "T": 2**40}  # fmt: skip

#: Resources that limit the run time and the memory, the one that counts first.
RUN_TIMES = ("h_rt", "s_rt")
MEMORY = ("h_vmem", "m_mem_free", "mem_free", "virtual_free")

#: Resources that are GPUs, as sites call them.
GPUS = ("gpu", "gpus", "ngpus")

#: Names and dates of ``qacct -j`` that are others than in the accounting file; what it may lack.
QACCT = {"jobname": "job_name", "jobnumber": "job_number", "taskid": "task_number",
         "qsub_time": "submission_time"}  # fmt: skip
DATES = ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S.%f")
NOTHING = {**dict.fromkeys(FIELD_NAMES, "0"), "job_number": "", **dict.fromkeys(
    ("granted_pe", "category", "pe_taskid", "project", "qdel_info", "job_name", "qname", "owner",
     "group", "hostname"), NONE)}  # fmt: skip

#: Most colons in a job name, and a repair.
MOST_COLONS = 8
COLONS = f"{LINES}colons in a job name: fields assigned by their kinds"

#: What becomes a column of :attr:`Trace.extra` as it is, with the word for nothing.
KEPT = {"account": ("project", ACCOUNT), "project": ("project", NONE),
        "priority": ("priority", "0"), "arid": ("reservation", "0")}  # fmt: skip

#: The word for the parallel environment, the host and whoever deleted a job in written records.
OURS = "hpcrowd"

#: Why a parallel job's task is dropped.
NO_JOB = f"{LINES}task of a parallel job without a record of the job"

REASONS = {
    "requested_memory": "not whole bytes, or no limit like 0",
    "status": "a record shows only whether a job was deleted, failed or neither",
}

_RECORD = re.compile(rb"(?:[^:\n]*:){5,13}?[0-9]+:[^:\n]*:[^:\n]*:(?:[0-9]+:){4}(?:[^:\n]*:){29,}")
_ID = re.compile(r"(0|[1-9][0-9]{0,14})(\.[1-9][0-9]{0,14})?")
_CLOCK = re.compile(r"(?:(?:([0-9]{0,9}):)?([0-9]{0,9}):)?([0-9]{1,15})")
_MEMORY = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)([kKmMgGtT]?)")
_SLOTS = re.compile(r"[0-9]{1,10}(?:[-,][0-9]{1,10})*")
_FAILED = re.compile(r"failed ([1-9][0-9]{0,3})")


def moment(text: str) -> float | None:
    """Return a time in s since 1970; Univa's are in ms. None for 0, which means unknown."""
    number = whole(text)
    if LATEST < number <= LATEST * 1000:
        return number / 1000
    return unix_time(text)


def seconds(text: str) -> int:
    """Return a limit of the run time, ``3600`` or ``1:00:00``, in s; -1 for no limit."""
    if text in ("INFINITY", NONE):
        return -1
    match = _CLOCK.fullmatch(text)
    if not match:
        raise ValueError("not a time, such as 3600 or 1:00:00")
    hours, minutes, rest = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


def size(text: str) -> float:
    """Return a size of memory, ``4G``, in kB; -1 for no limit."""
    if text in ("INFINITY", NONE):
        return -1
    match = _MEMORY.fullmatch(text)
    if not match:
        raise ValueError("not a size of memory, such as 4G")
    return float(match[1]) * UNITS[match[2]] / 1024


def slots(text: str) -> tuple[int, ...]:
    """Return the numbers in a range of slots: ``8``, ``2-8`` or ``2,3``."""
    if not _SLOTS.fullmatch(text):
        raise ValueError("not a number of slots, such as 8 or 2-8")
    return tuple(processors(part) for part in re.split("[-,]", text))


def options_of(category: str) -> Iterator[tuple[str, str]]:
    """Yield the hard requests of a job category: ``(h_rt, 3600)``, ``(-pe, 2-8)``."""
    words = category.split()
    for place, word in enumerate(words):
        after = words[place + 1 : place + 3]
        if word == "-l" and after and words[max(place - 1, 0)] != "-soft":
            for request in after[0].split(","):
                name, _, value = request.partition("=")
                yield name, value
        elif word == "-pe" and len(after) == 2:
            yield word, after[1]


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if not data.strip():
        raise TraceError(f"{source}: is empty; an accounting file has one record per line")
    jobs = Jobs(OddValues(source, options.strict))
    tasks: dict[tuple[str, str], list[Job]] = {}
    qacct = _is_qacct(data[:HEAD])
    zone = parse_zone(options.zone)
    for line, fields in _of_qacct(data, zone) if qacct else _records(data, jobs):
        try:
            job = _job(fields, Values(jobs.odd, line))
        except LeftOut:
            continue
        key = fields["job_number"], fields["task_number"]
        if fields["pe_taskid"] != NONE:
            tasks.setdefault(key, []).append(job)
            continue
        for task in tasks.pop(key, ()):
            _add(task, job)
        jobs.add((*key, fields["owner"]), job)
    if qacct and zone is None:
        jobs.repaired[NO_ZONE] += len(jobs.found)
    for key, rest in tasks.items():  # written after the record of their job
        for task in rest:
            found = jobs.latest((*key, task.words["user"]))
            if found is None:
                jobs.dropped[NO_JOB] += 1
            else:
                _add(task, found)
    return jobs.trace(options, "an accounting file of Grid Engine", NOT_READ)


def _records(data: bytes, jobs: Jobs) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the fields of each record of an accounting file."""
    for line, raw in enumerate(data.split(b"\n"), start=1):
        record = raw.strip()
        if len(record) < 2 or record.startswith(b"#"):
            continue
        words = decode(record).split(":")
        if not jobs.odd.strict and (whole_name := _with_colons(words)) != words:
            words = whole_name
            jobs.repaired[COLONS] += 1
        fields = dict(zip(FIELD_NAMES, words, strict=False))
        if len(fields) < FEWEST or b"\0" in record:
            rule = f"not a record of Grid Engine: {FEWEST} or more fields, separated by colons"
            jobs.odd.add(line, None, record, rule, left_out=True)
            continue
        yield line, fields


def _of_qacct(data: bytes, zone: tzinfo | None) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the fields of each job in the output of ``qacct -j``, in their units."""
    fields: dict[str, str] = {}
    begin = 0
    for line, raw in enumerate([*data.split(b"\n"), b"==="], start=1):
        name, _, text = decode(raw.strip()).partition(" ")
        if name.startswith("==="):
            if fields:
                plain = {QACCT.get(one, one): _plain(one, fields[one], zone) for one in fields}
                yield begin, NOTHING | plain
            fields, begin = {}, line + 1
        elif name:
            fields[name] = text.strip()


def _plain(name: str, text: str, zone: tzinfo | None) -> str:
    """Return a value of ``qacct`` as accounting files have it; one that is odd as it is."""
    if name.endswith("_time"):
        for form in DATES:
            with suppress(ValueError):
                found = datetime.strptime(text, form)
                return f"{found.replace(tzinfo=zone or UTC).timestamp():.0f}"
        return "0" if text in ("-/-", "") else text
    if name in ("failed", "exit_status"):  # with words behind the number
        return text.partition(" ")[0]
    if name in ("cpu", "ru_wallclock"):
        return text.removesuffix("s")
    if name == "maxvmem" and _MEMORY.fullmatch(text.removesuffix("B")):
        return f"{size(text.removesuffix('B')) * 1024:.3f}"
    return "0" if text == "undefined" else text


def _with_colons(words: list[str]) -> list[str]:
    """Return the fields of a record with the colons of its job name in one field."""
    name = FIELD_NAMES.index("job_name")
    if _plausible(words):
        return words
    ways = [
        [*words[:name], ":".join(words[name : name + colons + 1]), *words[name + colons + 1 :]]
        for colons in range(1, min(MOST_COLONS, len(words) - FEWEST) + 1)
    ]
    found = [way for way in ways if _plausible(way)]
    return found[0] if len(found) == 1 else words


def _plausible(words: list[str]) -> bool:
    """Return whether the fields around a job name are of their kinds."""
    fields = dict(zip(FIELD_NAMES, words, strict=False))
    return len(fields) >= FEWEST and all(
        re.fullmatch(form, fields[name]) for name, form in FORMS.items()
    )


def _job(fields: dict[str, str], values: Values) -> Job:
    """Return the job, or the task of a parallel job, in a record."""

    def read(name: str, convert: Callable[[str], Any], unknown: float | None = -1) -> Any:
        return values.read(name, fields[name], convert, unknown)

    number = values.needed("job_number", fields["job_number"], whole)
    task = values.needed("task_number", fields["task_number"], whole)
    submit, start, end = (
        values.read(name, fields[name], moment)
        for name in ("submission_time", "start_time", "end_time")
    )
    job = Job(f"{number}.{task}" if task > 0 else str(number), submit, start, end)
    failed, status = read("failed", whole, None), read("exit_status", whole, None)
    deleted = fields.get("qdel_info", NONE) not in (NONE, "")
    elapsed = read("ru_wallclock", decimal)
    job.walltime = elapsed if elapsed > 0 else None
    allocated = read("slots", processors)
    bad = None if None in (failed, status) else bool(failed or status)
    job.fields |= {
        "allocated_processors": allocated,
        "requested_processors": -1 if fields["granted_pe"] not in (NONE, "") else 1,
        "status": 5 if deleted else -1 if bad is None else 0 if bad else 1,
    }
    requests = dict(options_of(fields["category"]))
    if "-pe" in requests:
        asked = values.read("category", requests["-pe"], slots, (-1,))
        job.fields["requested_processors"] = (
            asked[0] if len(asked) == 1 else allocated if allocated > 0 else min(asked)
        )
    gpus = [requests[name] for name in GPUS if name in requests]
    if gpus and (count := values.read("category", gpus[0], processors, -1)) > 0:
        job.extra["gpus"] = str(count)
    for field, resources, convert in (
        ("requested_time", RUN_TIMES, seconds), ("requested_memory", MEMORY, size),
    ):  # fmt: skip
        for name in resources:
            if name in requests:
                job.fields[field] = values.read("category", requests[name], convert, -1)
                break
    for name, field, scale in (("cpu", "average_cpu", 1.0), ("maxvmem", "memory", 1 / 1024)):
        if (total := read(name, decimal)) > 0:
            job.average(field, total * scale)
    job.words = {
        "user": fields["owner"], "group": fields["group"],
        "executable": fields["job_name"], "queue": fields["qname"],
    }  # fmt: skip
    if failed and not deleted:
        job.extra["final_state"] = f"failed {failed}"
    job.extra["node_list"] = fields["hostname"]
    if start is not None and status:
        job.extra["exit_code"] = str(status)
    for name, (column, nothing) in KEPT.items():
        if fields.get(name, "") not in ("", nothing):
            job.extra[column] = fields[name]
    job.runs_again = failed is not None and failed not in ENDED and not deleted
    return job


def _add(task: Job, job: Job) -> None:
    """Add the CPU time and memory of a parallel job's task to the job, and its host."""
    for name in ("average_cpu", "memory"):
        total = task.fields.get(name, 0) * task.processors
        if total:
            job.average(name, total + job.fields.get(name, 0) * job.processors)
    hosts = job.extra["node_list"].split(",")
    if task.extra["node_list"] not in hosts:
        job.extra["node_list"] = ",".join([*hosts, task.extra["node_list"]])


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    return generated(GRIDENGINE, trace, lost, options, _record, _ID, REASONS)


def _record(job: Written) -> str:
    """Return the record of a job; with qdel_info only if it was deleted."""

    def word(text: str, nothing: str = "") -> str:
        return text.replace(":", "_") or nothing

    number, _, task = job.identifier.partition(".")
    fields = dict.fromkeys(FIELD_NAMES, "0")
    fields |= {
        "qname": re.sub("^#", "_", job.words["queue"]),
        "group": job.words["group"], "owner": job.words["user"],
        "job_name": job.words["executable"], "hostname": job.extra.get("node_list") or OURS,
        "department": "defaultdepartment", "pe_taskid": NONE, "job_class": NONE,
    }  # fmt: skip
    for name, (column, nothing) in KEPT.items():
        fields[name] = (name != "account" and job.extra.get(column)) or nothing
    deleted = job.status == 5
    failed, code = (
        _FAILED.fullmatch(job.extra.get("final_state", "")),
        job.extra.get("exit_code", ""),
    )
    bad = job.status in (0, 4, 5)
    fields |= {
        "job_number": number, "task_number": task or "0",
        "submission_time": str(job.submit), "start_time": str(job.start), "end_time": str(job.end),
        "ru_wallclock": str(max(job.run, 0)), "slots": str(max(job.allocated, 0)),
        "cpu": f"{max(job.cpu, 0):.6f}", "maxvmem": str(max(job.memory, 0)),
        "failed": failed[1] if bad and failed else str(KILLED) if deleted else "0",
        "exit_status": "0" if not bad else code if re.fullmatch("[0-9]{1,4}", code) else "137",
        "qdel_info": f"{OURS}@{OURS}" if deleted else NONE,
    }  # fmt: skip
    if bad and not deleted and fields["failed"] == fields["exit_status"] == "0":
        fields["exit_status"] = "1"
    requests = []
    if job.limit > 0:
        requests.append(f"h_rt={job.limit}")
    if re.fullmatch("[1-9][0-9]{0,8}", job.extra.get("gpus", "")):
        requests.append(f"gpu={job.extra['gpus']}")
    if job.requested_memory > 0:
        requests.append(f"h_vmem={job.requested_memory}")
    category = [f"-l {','.join(requests)}"] if requests else []
    parallel = job.requested != 1 or job.allocated > 1
    if parallel and job.requested > 0:
        category.append(f"-pe {OURS} {job.requested}")
    fields["granted_pe"] = OURS if parallel else NONE
    fields["category"] = " ".join(category) or NONE
    names = FIELD_NAMES if deleted else FIELD_NAMES[:USUAL]
    return ":".join(word(fields[name]) for name in names) + "\n"


def _looks_like(head: bytes) -> bool:
    return _is_qacct(head) or mostly(rows_in(head, b"#"), _RECORD.match)


def _is_qacct(head: bytes) -> bool:
    return {b"qname", b"jobnumber", b"slots"} <= {row.split()[0] for row in rows_in(head)}


#: Accounting files of Grid Engine.
GRIDENGINE = Format(
    "gridengine",
    "accounting file of Grid Engine; qacct -j",
    (".gridengine",),
    _looks_like,
    _parse,
    _generate,
)

parse_gridengine, generate_gridengine = GRIDENGINE.parse, GRIDENGINE.generate
read_gridengine, write_gridengine = GRIDENGINE.read, GRIDENGINE.write
