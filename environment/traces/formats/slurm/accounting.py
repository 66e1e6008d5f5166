r"""Slurm's accounting: the output of ``sacct -P``, read as a trace and written from one.

::

    JobID|User|JobName|Partition|Submit|Start|End|ElapsedRaw|State|AllocCPUS|...   columns by name
    77|ada|relax|long|2024-01-31T12:00:00|2024-01-31T12:05:00|...|CANCELLED by 1000|64|...
    77.batch||batch||2024-01-31T12:05:00|2024-01-31T12:05:00|...                   steps of job 77
    78_5|ada|scan|short|...                                                 task 5 of an array

Columns may come in any order; others are ignored. The fields of a trace come from

    ======================  =====================================================================
    number                  counted in the order of submissions; JobID is kept in ``extra``
    submit                  Submit; the first one if the job ran again
    wait                    Start - Submit; End - Submit if it never started
    run                     ElapsedRaw, else Elapsed, and the time for which it was suspended;
                            else End - Start; -1 if it never started
    allocated_processors    AllocCPUS, NCPUS, or ``cpu=`` of AllocTRES
    average_cpu             TotalCPU / AllocCPUS, to a thousandth of a second
    memory                  MaxRSS (else AveRSS) x NTasks / AllocCPUS, kB, of the step for which
                            that is largest; where NTasks is unknown one task counts
    requested_processors    ReqCPUS, or ``cpu=`` of ReqTRES
    requested_time          TimelimitRaw minutes, else Timelimit; -1 if there is none
    requested_memory        ReqMem in kB per requested processor; -1 for 0, which means all memory
    status                  State: COMPLETED 1, CANCELLED 5, other final states 0
    user, group             User, else UID; Account, else Group, else GID
    executable              JobName
    queue, partition        Partition and Cluster, or QOS and Partition, by an option
    preceding, think_time   -1
    ======================  =====================================================================

:mod:`hpcrowd.environment.traces.formats.slurm.jobs` describes how rows become jobs. Times are
written as local times of the given zone, else in UTC; an ambiguous time is followed by its offset.
Used memory is written in the row of a step, as in Slurm. A job is suspended for the time of
Suspended, else for that from Start to End by which Elapsed is shorter: ``elapsed = end - start -
suspended`` in Slurm's ``as_mysql_jobacct_process.c``; a run lasts from start to end. Energy is
ConsumedEnergyRaw, else ConsumedEnergy or ``energy=`` of AllocTRES, of the job or of its steps; add
that column to the command if nodes have meters.

Source: man page of ``sacct``; the mapping is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.traces.formats.common.base import Format, FormatOptions, Losses, OddValues
from hpcrowd.environment.traces.formats.common.names import (
    LARGEST_EXACT,
    NAMED,
    job_texts,
    worded,
)
from hpcrowd.environment.traces.formats.common.site_columns import (
    NUMBERS,
    earlier_runs,
    site_numbers,
)
from hpcrowd.environment.traces.formats.slurm.columns import (
    COLUMNS,
    SITE_WORDS,
    find_layout,
    is_cut,
)
from hpcrowd.environment.traces.formats.slurm.jobs import Fields, Times, copies, find_jobs
from hpcrowd.environment.traces.formats.slurm.records import (
    STEPS_ALONE,
    completions_in,
    is_completions,
    rows_of,
    with_steps,
)
from hpcrowd.environment.traces.formats.slurm.snapshot import Queued, expanded, is_queue, queued_in
from hpcrowd.environment.traces.formats.slurm.submit_lines import HELD, line_of
from hpcrowd.environment.traces.formats.slurm.table import Rows, read_rows
from hpcrowd.environment.traces.formats.slurm.values import (
    ENDED,
    FIRST_TIME,
    LAST_TIME,
    MOST,
    NO_TIME,
    duration_text,
    parse_state,
    time_texts,
)
from hpcrowd.environment.traces.formats.slurm.values import STATES as STATES_OF_SLURM
from hpcrowd.environment.traces.headers import parse_zone, unix_origin
from hpcrowd.environment.traces.trace import Trace

#: The delimiter of ``sacct -P``, and the replacement for it and for line ends in names.
DELIMITER, INSTEAD = "|", "_"

#: The state that is written for a status, the nearest one if Slurm has none; else the first.
STATES = {1: "COMPLETED", 0: "FAILED", 5: "CANCELLED", 2: "COMPLETED", 3: "COMPLETED", 4: "FAILED"}

#: Why tasks that wait may be missing.
NOT_LISTED = "array whose tasks are not all listed (...); print them with SLURM_BITSTR_LEN=0"

#: Longest time that is written, s; longer ones end after the last year that is read.
LONGEST = LAST_TIME - FIRST_TIME

#: The columns that say what the last run used.
OF_LAST_RUN = {"TotalCPU", "Suspended", "ConsumedEnergyRaw", "ExitCode", "NodeList"}

#: The columns that hold the fields of words, for each choice of the queue.
WORD_COLUMNS = {
    "partition": {"user": "User", "group": "Account", "executable": "JobName",
                  "queue": "Partition", "partition": "Cluster"},
    "qos": {"user": "User", "group": "Account", "executable": "JobName", "queue": "QOS",
            "partition": "Partition"},
}  # fmt: skip

#: The reason why a field differs after reading back.
REASONS = {
    "number": "jobs are numbered in the order of submissions",
    "submit": "not a whole second from 1970 to 2200",
    "wait": "not whole seconds, or the submission is unknown",
    "run": "not whole seconds, or 0 for a job that looks as if it never started",
    "allocated_processors": "not a whole number of processors",
    "average_cpu": "no allocated processors, or finer than TotalCPU",
    "memory": "not a size of memory",
    "requested_processors": "not a whole number of processors",
    "requested_time": "time limits are whole minutes, rounded up",
    "requested_memory": "0 requests all memory",
    "status": "Slurm has no state for it",
    "preceding": "no field for it",
    "think_time": "no field for it",
    **dict.fromkeys(NAMED, "a row cannot hold the word, or it means unknown"),
    "missing": "no field for it",
    "changed": "not as Slurm writes it",
    "job_id": "not a Slurm job number",
    "header": "accounting has no header",
    "comments": "accounting has no comments",
}

_NUMBER = "(0|[1-9][0-9]{0,17})"
_ID = re.compile(rf"{_NUMBER}(_({_NUMBER}|\[[-0-9,:%.]+\])|\+{_NUMBER})?")
_BREAKS = re.compile(r"[|\r\n\0]")


def written(trace: Trace, options: FormatOptions) -> tuple[bytes, Int64s]:
    """Return a trace as ``sacct -P`` would write it, and the order in which jobs are read back.

    Jobs are ordered by submission; those without one come first.
    """
    zone = parse_zone(options.zone)
    submit = _submissions(trace)
    wait, run = _whole(trace["wait"]), _whole(trace["run"])
    placed = (submit != NO_TIME) & (wait >= 0) & (wait <= LONGEST)
    begin = np.where(placed, submit + np.where(placed, wait, 0), NO_TIME)
    begin[begin >= LAST_TIME] = NO_TIME
    ran = run >= 0
    end = np.where(ran & (run <= LONGEST) & (begin != NO_TIME), begin + np.maximum(run, 0), NO_TIME)
    end = np.where(ran, end, begin)
    end[end >= LAST_TIME] = NO_TIME
    status = trace["status"]
    state = [STATES.get(value, "COMPLETED") for value in status.tolist()]
    cancelled = status == 5
    allocated = _count(trace["allocated_processors"])
    nothing = [""] * len(trace)
    texts: dict[str, list[str]] = dict.fromkeys(COLUMNS, nothing)
    texts |= {
        "Submit": time_texts(submit, zone),
        "Start": time_texts(np.where(ran, begin, NO_TIME), zone),
        "End": time_texts(end, zone),
        "ElapsedRaw": _number_texts(np.where(~ran & cancelled, 0, run)),
        "State": state,
        "AllocCPUS": _number_texts(allocated),
        "ReqCPUS": _number_texts(_count(trace["requested_processors"])),
        "TimelimitRaw": _limits(trace["requested_time"]),
        "ReqMem": [f"{text}Kc" if text else "" for text in _sizes(trace["requested_memory"])],
        "TotalCPU": _cpu_times(trace["average_cpu"], allocated),
    }
    for name, column in WORD_COLUMNS[options.queue].items():
        words = worded(trace, name, "")
        table = {word: _BREAKS.sub(INSTEAD, word) for word in set(words)}
        texts[column] = [table[word] for word in words]
    texts["JobID"] = _ids(trace, submit)
    texts |= _site_texts(trace, texts, submit, zone)
    order = np.argsort(submit, kind="stable")
    before = _earlier_rows(trace, texts, submit, zone)
    lines = list(map(DELIMITER.join, zip(*texts.values(), strict=True)))
    requested = _count(trace["requested_processors"])
    tasks = np.maximum(np.where(allocated > 0, allocated, requested), 1).tolist()
    for place, memory in enumerate(_sizes(trace["memory"])):
        if memory:
            step = _step(texts, place, memory, tasks[place])
            lines[place] = f"{lines[place]}\n{step}"
    for place, earlier in before.items():
        lines[place] = f"{earlier}\n{lines[place]}"
    rows = [DELIMITER.join(texts), *(lines[place] for place in order)]
    return "\n".join(rows).encode("utf-8", "replace") + b"\n", order


def _earlier_rows(
    trace: Trace, texts: dict[str, list[str]], submit: Int64s, zone: tzinfo | None
) -> dict[int, str]:
    """Return the rows of earlier runs, by job; let the row of each last run begin after them."""
    found = {}
    for place, runs in earlier_runs(trace).items():
        if submit[place] == NO_TIME or submit[place] + runs[-1].again >= LAST_TIME:
            continue
        moments = np.array([0, *(moment for one in runs for moment in one[:3])]) + submit[place]
        written = time_texts(moments, zone)
        rows = []
        for number, run in enumerate(runs):
            since, start, end = written[3 * number : 3 * number + 3]
            known = STATES_OF_SLURM.get(run.state)
            cells = {name: column[place] for name, column in texts.items()} | {
                "Submit": since,
                "Start": start,
                "End": end,
                "ElapsedRaw": str(run.end - run.start),
                "State": run.state if known is not None and known.runs_again else "REQUEUED",
                "AllocCPUS": str(run.processors or ""),
                **dict.fromkeys(OF_LAST_RUN & set(texts), ""),
            }
            rows.append(DELIMITER.join(cells.values()))
        texts["Submit"][place] = written[-1]
        found[place] = "\n".join(rows)
    return found


def _site_texts(
    trace: Trace, texts: dict[str, list[str]], submit: Int64s, zone: tzinfo | None
) -> dict[str, list[str]]:
    """Return the columns of Slurm that hold columns beyond the fields."""
    jobs = len(trace)
    extra = {name: values.tolist() for name, values in trace.extra.items()}
    numbers = {name: site_numbers(trace.extra, name, jobs) for name in NUMBERS & set(extra)}
    found: dict[str, list[str]] = {}
    if "final_state" in extra:
        by = extra.get("cancelled_by", [""] * jobs)
        alone = len(set(texts["JobID"])) == jobs
        found["State"] = [
            _state(*row, alone) for row in zip(extra["final_state"], by, trace["status"].tolist(),
                                               texts["State"], strict=True)]  # fmt: skip
    for column, name in SITE_WORDS.items():
        if name in extra:
            found[column] = [_BREAKS.sub(INSTEAD, text) for text in extra[name]]
    for column, name in (("QOS", "qos"), ("Cluster", "cluster_name")):
        if name in extra and not any(texts[column]):
            found[column] = [_BREAKS.sub(INSTEAD, text) for text in extra[name]]
    if "nodes" in numbers:
        fine = (numbers["nodes"] > 0) & (numbers["nodes"] <= MOST)
        found["NNodes"] = _number_texts(np.where(fine, numbers["nodes"], UNKNOWN))
    if "energy" in numbers:
        known = np.where(numbers["energy"] > 0, numbers["energy"], UNKNOWN)
        found["ConsumedEnergyRaw"] = _number_texts(known)
    if "eligible" in numbers:
        later = submit + numbers["eligible"]
        fine = (submit != NO_TIME) & (numbers["eligible"] < LAST_TIME) & (later < LAST_TIME)
        found["Eligible"] = time_texts(np.where(fine, later, NO_TIME), zone)
    if "suspended" in numbers:
        run = _whole(trace["run"])
        most = np.where(run > 0, run, 0)
        suspended = np.where(numbers["suspended"] <= most, numbers["suspended"], 0)
        found["Suspended"] = [duration_text(1000 * one) for one in suspended.tolist()]
        elapsed = np.where(suspended > 0, run - suspended, UNKNOWN).tolist()
        found["ElapsedRaw"] = [
            text if less < 0 else str(less)
            for text, less in zip(texts["ElapsedRaw"], elapsed, strict=True)
        ]
    names = [name for name in HELD if name in extra]
    rows = zip(*(extra[name] for name in names), strict=True)
    lines = cache(lambda *row: _BREAKS.sub(INSTEAD, line_of(dict(zip(names, row, strict=True)))))
    options = [lines(*row) for row in rows]
    return found | ({"SubmitLine": options} if any(options) else {})


def _state(state: str, by: str, status: int, usual: str, alone: bool) -> str:
    """Return a state as sacct writes it, if it goes with the status of the job."""
    if ENDED.get(state) != status or (STATES_OF_SLURM[state].runs_again and not alone):
        return usual
    return f"{state} by {by}" if state == "CANCELLED" and by.isdecimal() else state


def _submissions(trace: Trace) -> Int64s:
    """Return the Unix times of submissions; NO_TIME where they cannot be written."""
    origin = unix_origin(trace.header)
    if not 0 <= origin < LAST_TIME:
        origin = 0
    submit = trace["submit"]
    whole = _whole(submit)
    fine = (whole >= 0) & (whole < LAST_TIME - origin)
    return np.where(fine, np.where(fine, whole, 0) + origin, NO_TIME)


def _whole(values: NDArray[Any]) -> Int64s:
    """Return values as whole numbers, rounded half up; -1 for negative ones."""
    return np.where(values < 0, UNKNOWN, round_half_up(np.maximum(values, 0))).astype(np.int64)


def _count(values: NDArray[Any]) -> Int64s:
    """Return numbers of processors as whole numbers; -1 for impossible ones."""
    whole = _whole(values)
    return np.where(whole <= MOST, whole, UNKNOWN)


def _number_texts(values: Int64s) -> list[str]:
    return [str(value) if value >= 0 else "" for value in values.tolist()]


def _limits(seconds: NDArray[Any]) -> list[str]:
    """Return time limits in whole minutes, rounded up."""
    minutes = np.ceil(np.asarray(seconds, np.float64) / 60)
    fine = (minutes >= 0) & (seconds >= 0) & (minutes * 60 <= LARGEST_EXACT)
    return _number_texts(np.where(fine, minutes, UNKNOWN).astype(np.int64))


def _sizes(kilobytes: NDArray[Any]) -> list[str]:
    """Return sizes of memory in kB, without the unit."""
    return [
        np.format_float_positional(size, trim="-") if 0 <= size <= LARGEST_EXACT else ""
        for size in kilobytes.astype(np.float64).tolist()
    ]


def _cpu_times(average: NDArray[Any], processors: Int64s) -> list[str]:
    """Return the processor time of jobs on all their processors, to a thousandth of a second."""
    total = np.where((average >= 0) & (processors > 0), average.astype(float) * processors, -1.0)
    return [
        duration_text(int(seconds * 1000 + 0.5)) if 0 <= seconds < LARGEST_EXACT / 2000 else ""
        for seconds in total.tolist()
    ]


def _ids(trace: Trace, submit: Int64s) -> list[str]:
    """Return a Slurm job number for each job: that in Slurm, else its own, else its place."""
    found = [str(one) for one in trace.extra.get("job_id", ())]
    if found and all(map(_ID.fullmatch, found)):
        # Two jobs with one number and submission would be read as one job, or as its parts.
        whole = [one.partition("+")[0] for one in found]
        if len(set(zip(whole, submit.tolist(), strict=True))) == len(found):
            return found
    return job_texts(trace)


def _step(texts: dict[str, list[str]], place: int, memory: str, tasks: int) -> str:
    """Return the row of a step with the memory that a job used: a task on each processor."""
    cells = {name: texts[name][place] for name in ("Cluster", "Submit", "Start", "End", "State")}
    cells |= {"JobID": f"{texts['JobID'][place]}.batch", "JobName": "batch", "MaxRSS": f"{memory}K",
              "NTasks": str(tasks)}  # fmt: skip
    return DELIMITER.join(cells.get(name, "") for name in texts)


def _parse(data: bytes, source: str, options: FormatOptions) -> Trace:
    if is_completions(data):
        odd = OddValues(source, options.strict, lines=False)
        rows = rows_of(completions_in(data, odd), odd)
        return trace_of(rows._replace(odd=odd), source, options)
    if is_queue(data):
        return trace_of_queue(queued_in(data, source), source, options)
    return trace_of(read_rows(data, OddValues(source, options.strict)), source, options)


def trace_of_queue(jobs: Sequence[Queued], source: str, options: FormatOptions) -> Trace:
    """Return the trace of the jobs that wait and run, and of others that are still shown.

    Those that have not ended have the status -1 and no run time; ``elapsed`` in ``extra`` is for
    how long they have run.
    """
    whole, cut = expanded(list(jobs))
    rows = rows_of((one.row for one in whole), OddValues(source, strict=True, lines=False))
    trace = trace_of(rows, source, options, unfinished=True)
    last = max((one.seen for one in whole), default=0)
    elapsed: dict[str, int] = {}
    for one in whole:
        start, over = one.row["Start"], one.row["End"] != "Unknown"
        since = last - int(start) if start.isdecimal() and last and not over else None
        so_far = since if one.elapsed is None else one.elapsed
        if so_far is not None:
            elapsed[one.row["JobID"].partition("+")[0]] = so_far
    ids = trace.extra["job_id"].tolist()
    if elapsed:
        texts = [str(elapsed[one]) if one in elapsed else "" for one in ids]
        trace.extra["elapsed"] = np.array(texts, np.object_)
    if cut:
        trace.dropped[NOT_LISTED] += cut
    return trace


def trace_of(rows: Rows, source: str, options: FormatOptions, *, unfinished: bool = False) -> Trace:
    """Return the trace of the rows of Slurm's accounting.

    If ``unfinished``, here or in the options, jobs that have not ended are kept. Raises TraceError
    if no job has ended.
    """
    zone = parse_zone(options.zone)
    states = [parse_state(word) for word in rows.words["state"][1]]
    times = Times(rows, zone)
    counts = copies(rows, states, times)
    memory, energy, alone = with_steps(rows, counts)
    jobs = find_jobs(rows, states, times, counts, unfinished=unfinished or options.unfinished)
    if alone:
        jobs.dropped[STEPS_ALONE] = alone
    if rows.mended is not None:
        jobs.count_mended(rows.mended)
    if rows.odd is not None:
        rows.odd.count_into(jobs.repaired, jobs.dropped)
    if not len(jobs.row):
        most = jobs.dropped.most_common(3)
        why = ", ".join(f"{count} {reason}" for reason, count in most) or "only headers"
        raise TraceError(f"{source}: contains no jobs that have ended ({why})")
    return Fields(rows, jobs, times, states, memory, energy).trace(source, zone, options.queue)


def _generate(trace: Trace, lost: Losses, options: FormatOptions) -> bytes:
    data, order = written(trace, options)
    if lost.asked and len(trace):
        lost.read_back(trace, SACCT.parse(data, trace.source, options), REASONS, order)
    return data


def _looks_like(head: bytes) -> bool:
    """Return whether it begins as output of sacct, whole or cut, squeue or scontrol, or jobcomp."""
    other = is_completions(head) or is_queue(head)
    return find_layout(head) is not None or is_cut(head) is not None or other


#: The output of ``sacct -P``.
SACCT = Format(
    "sacct",
    "Slurm's accounting, sacct -P; jobcomp/filetxt, squeue, scontrol",
    (".sacct",),
    _looks_like,
    _parse,
    _generate,
)

# The pair on bytes, then the pair on paths.
parse_sacct, generate_sacct = SACCT.parse, SACCT.generate
read_sacct, write_sacct = SACCT.read, SACCT.write
