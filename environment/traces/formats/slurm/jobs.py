"""Rows of Slurm's accounting as jobs, and the fields of a trace from their columns.

- Rows with the same number are one job if they have the same user and the earlier run ended in a
  state after which Slurm runs a job again: the last run and the first submission count, and the
  earlier runs are kept in a column of their own. Otherwise the number was reused. Rows with the
  same start are duplicates of one run, as in files of two months put together.
- A job that has not ended is dropped.
- The remaining tasks of a cancelled array (``77_[6-10%2]``) are kept as one job; the other tasks
  that never started are dropped.
- The parts of a heterogeneous job (``77+0``, ``77+1``) are one job with all their processors.

Fields come from columns as :mod:`hpcrowd.environment.traces.formats.slurm.accounting` lists them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.header import MOST_IN_USE, decode, most_in_use
from hpcrowd.environment.holds.recorded import JobIds, job_id, preceding_by_dependency
from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.formats.common.base import (
    BEFORE_START,
    BEFORE_SUBMIT,
    LAST_SHOWN,
    NO_ZONE,
)
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT, NAMED, NOTHING, numbered
from hpcrowd.environment.traces.formats.common.site_columns import (
    COMPONENTS,
    RUNS,
    EarlierRun,
    Runs,
    filled,
    in_order,
    text_of,
    texts_of,
)
from hpcrowd.environment.traces.formats.slurm.columns import SITE_WORDS, SUBMIT_LINE
from hpcrowd.environment.traces.formats.slurm.mending import SURPLUS, Mended
from hpcrowd.environment.traces.formats.slurm.records import held, job_keys
from hpcrowd.environment.traces.formats.slurm.submit_lines import Asked, asked_in, request_columns
from hpcrowd.environment.traces.formats.slurm.table import Rows
from hpcrowd.environment.traces.formats.slurm.values import (
    ENDED,
    LAST_TIME,
    NO_TIME,
    STATES,
    count_tasks,
    local,
    parse_requested_memory,
    parse_state,
    parse_time,
    to_unix,
)
from hpcrowd.environment.traces.headers import made_header
from hpcrowd.environment.traces.trace import LINES, Trace, all_columns, tally

#: Why rows are dropped or jobs repaired.
TOLD_TWICE = f"{LINES}duplicate rows of one run"
NEVER_STARTED = "array tasks that never started, in one row: one of them kept"
RAN_AGAIN = "requeued after a failure or preemption: an earlier run without start or end left out"
RESIZED = "resized while it ran: last size, and first submission kept"
ROUNDED = "requested memory in large units (--units), rounded to a hundredth of one"
PARTS = "heterogeneous job: parts merged into one job, processors added up"

#: By multiples of this clocks are changed, s.
CHANGE = 1800

#: Decimals of seconds in used processor time; sacct writes thousandths.
DECIMALS = 3

#: Repairs.
FIRST_SHOWN = "ambiguous local time (clocks put back): the first taken"
NEVER_SHOWN = "nonexistent local time (clocks put forward): moved to the end of the gap"

#: Columns of times.
MOMENTS = ("submit", "start", "end")

#: Columns of a field of words. The first that has any values counts, for users row by row.
WORDS_OF = {
    "user": ("user", "uid"),
    "group": ("account", "group", "gid"),
    "executable": ("jobname",),
}

#: The columns of queue (field 15) and partition (field 16) for each choice of the queue.
QUEUES = {"partition": ("partition", "cluster"), "qos": ("qos", "partition")}

#: Names of columns in notes.
CALLED = {"partition": "Partition", "cluster": "Cluster", "qos": "QOS"}

#: Words for nothing in columns of words.
EMPTY_TEXTS = frozenset(("", "Unknown", "None", "None assigned", "(null)", "0:0"))

#: The node list of a job that never started.
NO_NODES = b"None assigned"

_BY = re.compile(rb"by (\S+)")
_ROUNDED = re.compile(rb"[0-9]+\.[0-9]+[GTPE][cn]?")

SIZE_NOTE = f"{MOST_IN_USE}; sacct tells no size of the machine"


@dataclass
class Jobs:
    """The jobs of the trace, and the rows that they come from."""

    row: Int64s  #: the row of each job, an index into :class:`Rows`, shape (jobs,)
    submit: Int64s  #: time of the first submission, shape (jobs,)
    first: Int64s  #: the row of the first run of each job, shape (jobs,)
    #: How often each job was run again, and the processor-seconds of its earlier runs, shape
    #: (jobs,).
    restarts: Int64s
    lost_work: Int64s
    runs: dict[int, Runs]  #: the earlier runs of jobs that have any
    parts: dict[int, Int64s]  #: for each heterogeneous job its index among the jobs and its rows
    ids: NDArray[np.object_]  #: number of each job, as text
    #: Number of jobs that were repaired or dropped, by reason.
    repaired: Counter[str]
    dropped: Counter[str]

    def count_mended(self, mended: Mended) -> None:
        """Count rows with names that broke them, and lines that belong to no row."""
        if mended.repaired:
            self.repaired[SURPLUS] += len(mended.repaired)
        if mended.left_out:
            self.dropped[mended.unclear] += len(mended.left_out)


def copies(rows: Rows, states: list[str], times: Times) -> Int64s:
    """Return for each row the one that counts of all rows of its run, shape (rows,).

    Rows with the same number, user, submission and start are of one run, as in files of two months
    put together: the last one counts, if possible one in which the run has ended.
    """
    user, submit, start = _words(rows, "user")[0], times.submit, times.start
    state, (keys, _) = rows.words["state"][0], job_keys(rows)
    ended = np.array([name in ENDED for name in states], bool)[state]
    again = np.array([STATES[name].runs_again for name in states], bool)[state]
    order = np.lexsort((rows.place, ended, start, submit, user, keys))
    one, other = order[:-1], order[1:]
    same = (submit[one] != NO_TIME) & ((start[one] != NO_TIME) | ~again[one])
    for values in (keys, user, submit, start):
        same &= values[one] == values[other]
    # The last of each stretch of rows of one run.
    ends = np.flatnonzero(np.append(~same, True)[: len(order)])
    counts = np.empty(len(order), np.int64)
    counts[order] = order[ends[np.searchsorted(ends, np.arange(len(order)))]] if len(order) else 0
    return counts


def find_jobs(
    rows: Rows, states: list[str], times: Times, counts: Int64s, *, unfinished: bool = False
) -> Jobs:
    """Find the rows that are jobs; if ``unfinished``, also those that have not ended.

    ``states`` has the state for each word of the column, and ``counts`` the row that counts of all
    rows of a run, see :func:`copies`.
    """
    user, submit = _words(rows, "user")[0], times.submit
    repaired: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    state = rows.words["state"][0]
    keys, _ = job_keys(rows)
    order = np.lexsort((rows.place, submit, keys))  # the runs of each job, one after the other
    counting = (counts == np.arange(len(counts)))[order]
    if twice := int(np.count_nonzero(~counting)):
        dropped[TOLD_TWICE] = twice
        order = order[counting]
    link = np.zeros(len(order), bool)
    one, other = order[:-1], order[1:]
    again = np.array([STATES[name].runs_again for name in states], bool)[state]
    link[1:] = (keys[one] == keys[other]) & (user[one] == user[other]) & again[one]
    first = np.flatnonzero(~link)  # where each job begins
    last = np.append(first[1:], len(order))[: len(first)] - 1  # empty if there are only steps
    row, begun = order[last], order[first]
    when = submit[begun]
    restarts, lost, resized = _work_before(rows, states, times, order, first, last)
    runs = {
        int(place): _earlier_runs(rows, states, times, order[first[place] : last[place] + 1])
        for place in np.flatnonzero(restarts)
    }
    unclear = lost > 0
    unclear[[place for place, found in runs.items() if found]] = False
    ids = np.array(rows.ids, np.object_)[rows.job[row]]
    del order, link

    told = state[row]
    ended = np.array([unfinished or name in ENDED for name in states], bool)[told]
    whole = np.ones(len(row), bool)  # all but the later parts of heterogeneous jobs
    leaders: dict[int, Int64s] = {}
    for places in _parts(rows, row, when, ids):
        leader = places[0]
        whole[places[1:]] = False
        ids[leader] = ids[leader].partition("+")[0]
        left = [place for place in places if not ended[place]]
        if left:
            told[leader], ended[leader] = told[left[0]], False
        else:
            leaders[leader] = row[places]
        found = [run for place in places for run in runs.pop(place, ())]
        if found:
            runs[leader] = _joined(found)
    for place in np.flatnonzero(~ended & whole):
        dropped[f"state {states[told[place]]}"] += count_tasks(ids[place])
    keep = ended & whole
    bracket = np.array(["[" in text for text in rows.ids], bool)[rows.job[row]]
    for place in np.flatnonzero(bracket & keep):
        if (rest := count_tasks(ids[place]) - 1) > 0:
            dropped[NEVER_STARTED] += rest
    tally(repaired, RAN_AGAIN, keep & unclear)
    tally(repaired, RESIZED, keep & (resized > 0))
    if leaders:
        repaired[PARTS] = len(leaders)
    kept = np.flatnonzero(keep)
    listed, numbers = _in_arrays(rows.place[row[kept]], ids[kept].tolist())
    kept = kept[np.lexsort((numbers, listed, when[kept]))]
    position = np.full(len(keep), -1)
    position[kept] = np.arange(len(kept))
    return Jobs(
        row[kept],
        when[kept],
        begun[kept],
        restarts[kept],
        lost[kept],
        {
            int(position[place]): in_order(found, int(when[place]))
            for place, found in runs.items()
            if found and keep[place] and when[place] != NO_TIME
        },
        {int(position[leader]): found for leader, found in leaders.items()},
        ids[kept],
        repaired,
        dropped,
    )


def _in_arrays(place: Int64s, ids: list[str]) -> tuple[Int64s, Int64s]:
    """Return the place of each job, that of the first of its tasks for an array, and its task.

    sacct lists tasks by the numbers they get when they start; the last one keeps the array's.
    """
    first: dict[int, int] = {}
    numbers = [job_id(text) for text in ids]
    for one, where in zip(numbers, place.tolist(), strict=True):
        if one.task != UNKNOWN:
            first[one.number] = min(where, first.get(one.number, where))
    places = [
        first[one.number] if one.task != UNKNOWN else where
        for one, where in zip(numbers, place.tolist(), strict=True)
    ]
    return np.array(places, np.int64), np.array([one.task for one in numbers], np.int64)


def _earlier_runs(rows: Rows, states: list[str], times: Times, order: Int64s) -> Runs:
    """Return the earlier runs of a job, in Unix times, given all its rows in order."""
    codes, held = rows.words["state"][0], rows.numbers.get("allocated")
    runs = []
    for row, after in pairwise(order.tolist()):
        name, start, end = states[codes[row]], int(times.start[row]), int(times.end[row])
        if end == NO_TIME != start and times.elapsed[row] >= 0:
            end = start + int(times.elapsed[row])
        if name != "RESIZING" and NO_TIME not in (start, end):
            processors = 0 if held is None else max(int(held[row]), 0)
            again = max(int(times.submit[after]), end)
            runs.append(EarlierRun(start, end, again, processors, name))
    return tuple(runs)


def _joined(runs: list[EarlierRun]) -> Runs:
    """Return the runs of a heterogeneous job from those of its parts, which begin together."""
    found: dict[tuple[int, int], EarlierRun] = {}
    for run in runs:
        other = found.get((run.start, run.end))
        more = 0 if other is None else other.processors
        found[run.start, run.end] = run._replace(processors=run.processors + more)
    return tuple(found.values())


def _work_before(
    rows: Rows, states: list[str], times: Times, order: Int64s, first: Int64s, last: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Return how often each job was run again, the work that was lost, and its changes of size.

    ``order`` has the rows by job and submission; those of each job are from ``first`` to ``last``.
    """
    earlier = np.ones(len(order), bool)
    earlier[last] = False
    resizing = np.array([name == "RESIZING" for name in states], bool)[rows.words["state"][0]]
    resizing = resizing[order]
    held = rows.numbers.get("allocated", np.zeros(len(rows.job), np.int64))
    work = (np.maximum(times.elapsed, 0) * np.maximum(held, 0))[order]

    def summed(values: NDArray[Any]) -> Int64s:
        total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
        return np.asarray(total[last + 1] - total[first])

    again = earlier & ~resizing
    return summed(again), summed(np.where(again, work, 0)), summed(earlier & resizing)


def _parts(rows: Rows, row: Int64s, submit: Int64s, ids: NDArray[np.object_]) -> list[list[int]]:
    """Return the indices of the parts, in order, of each heterogeneous job with several parts."""
    plus = np.array(["+" in text for text in rows.ids], bool)[rows.job[row]]
    if not plus.any():
        return []
    cluster = rows.words["cluster"][0] if "cluster" in rows.words else np.zeros(len(rows.job), int)
    found: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for place in np.flatnonzero(plus):
        number, _, offset = ids[place].partition("+")
        key = (number, int(cluster[row[place]]), int(submit[place]))
        found.setdefault(key, []).append((int(offset), int(place)))
    return [[place for _, place in sorted(parts)] for parts in found.values() if len(parts) > 1]


class Times:
    """The times at which the run of each row was submitted, began and ended.

    An ambiguous local time (clocks put back) is taken as the first of the two moments, unless the
    run would then begin before its submission or end before it begins, or only the second one
    gives the recorded length.

    Attributes
    ----------
    submit, start, end, eligible
        Unix times, shape (rows,); ``NO_TIME`` if missing.
    elapsed
        Recorded run time, s; -1 if missing.
    local, unzoned, skipped, first_shown, last_shown
        Rows with local times; with local times of an unknown zone; with nonexistent ones; with
        ambiguous ones, where the first or the second moment was taken.
    """

    def __init__(self, rows: Rows, zone: tzinfo | None) -> None:
        told, nothing = rows.numbers, np.full(len(rows.job), NO_TIME)
        submit, start, end = (to_unix(told.get(key, nothing), zone) for key in MOMENTS)
        self.elapsed = told.get("elapsed", np.full(len(rows.job), UNKNOWN))
        self.local = np.any([local(told.get(key, nothing)) for key in MOMENTS], axis=0)
        self.unzoned = self.local & (zone is None)
        self.submit = submit.unix
        self.eligible = to_unix(told.get("eligible", nothing), zone).unix
        self.skipped = submit.skipped | start.skipped | end.skipped
        early = start.unix < self.submit
        fits = (end.unix - start.unix != self.elapsed) & (end.unix != NO_TIME)
        fits &= end.unix - start.unix - start.again == self.elapsed
        late_start = (start.again > 0) & (early | fits)
        self.start = start.unix + np.where(late_start, start.again, 0)
        early = end.unix < np.maximum(self.start, self.submit)
        fits = (end.unix - self.start != self.elapsed) & (self.start != NO_TIME)
        fits &= end.unix + end.again - self.start == self.elapsed
        late_end = (end.again > 0) & (early | fits)
        self.end = end.unix + np.where(late_end, end.again, 0)
        self.last_shown = late_start | late_end
        twice = (submit.again > 0) | (start.again > 0) | (end.again > 0)
        self.first_shown = twice & ~self.last_shown


def _words(rows: Rows, name: str) -> tuple[Int64s, list[str]]:
    """Return the index of each row's word among a field's words, -1 for none, and these words."""
    codes = np.full(len(rows.job), -1, np.int64)
    words: list[str] = []
    for column in WORDS_OF[name]:
        if column not in rows.words or (name != "user" and np.any(codes >= 0)):
            continue
        found, decoded = rows.decoded(column)
        telling = np.array([text not in NOTHING for text in decoded], bool)
        free = (codes < 0) & telling[found]
        codes[free] = found[free] + len(words)
        words += decoded
    return codes, words


class Fields:
    """The fields of the jobs.

    Parameters
    ----------
    rows, jobs, times
        The rows of the text, which of them are jobs, and their times.
    states
        The state for each word of column ``state``.
    memory, energy
        Memory, kB per processor, and energy, J, used by each row with its steps.
    """

    def __init__(
        self,
        rows: Rows,
        jobs: Jobs,
        times: Times,
        states: list[str],
        memory: NDArray[np.float64],
        energy: NDArray[np.float64],
    ) -> None:
        self.rows, self.jobs, self.times = rows, jobs, times
        self.energy = energy[jobs.row]
        row = jobs.row
        self.submit, self.start, self.end = jobs.submit, times.start[row], times.end[row]
        self.elapsed, self.memory = times.elapsed[row], memory[row]
        self.allocated, self.requested = self._told("allocated", row), self._told("requested", row)
        self.limit, self.cpu = self._told("limit", row), self._told("total_cpu", row).astype(float)
        self.asked = self._asked(row)
        # Slurm's elapsed time is that from start to end without suspended time.
        idle = np.where(times.elapsed > 0, times.end - times.start - times.elapsed, 0)
        idle = np.where((times.start != NO_TIME) & (times.end != NO_TIME), idle, 0)[row]
        idle = np.where(times.unzoned[row] & (idle % CHANGE == 0), 0, idle)
        told_idle = self._told("suspended", row)
        self.suspended = np.maximum(np.where(told_idle < 0, idle, told_idle), 0)
        self.rest = np.array(["[" in text for text in jobs.ids], bool)  # tasks that never started
        if "nodelist" in rows.words:
            # Of a job that is cancelled while it is held, Start may be the second of its end.
            codes, words = rows.words["nodelist"]
            self.rest |= np.array([word == NO_NODES for word in words], bool)[codes[row]]
        self.allocated = np.where(self.rest, 0, self.allocated)
        status = np.array([ENDED.get(name, UNKNOWN) for name in states])[rows.words["state"][0]]
        self.status = status[row]
        for place, parts in jobs.parts.items():
            self._join(place, parts, memory[parts], status[parts])
            self.energy[place] = energy[parts].sum() if np.all(energy[parts] > 0) else UNKNOWN

    def _told(self, key: str, row: Int64s) -> NDArray[Any]:
        told = self.rows.numbers.get(key)
        return np.full(len(row), UNKNOWN) if told is None else told[row]

    def _asked(self, row: Int64s) -> NDArray[np.float64]:
        """Return the memory that rows request per processor, kB."""
        if "reqmem" not in self.rows.words:
            return np.full(len(row), float(UNKNOWN))
        codes, words = self.rows.words["reqmem"]
        asked = [parse_requested_memory(word) for word in words]
        size = np.array([one.kilobytes for one in asked])[codes[row]]
        of = np.array([one.of for one in asked])[codes[row]]
        requested, allocated = self._told("requested", row), self._told("allocated", row)
        processors = np.where(requested > 0, requested, allocated)
        times = np.where(of == "n", self._told("nodes", row), 1)
        shared = np.floor(size * times / np.maximum(processors, 1) + 0.5)
        known = (size >= 0) & (processors > 0) & (times > 0) & (shared <= LARGEST_EXACT)
        shared = np.where(known, shared, UNKNOWN)
        return np.where(of == "c", size, shared)

    def _join(self, place: int, parts: Int64s, memory: NDArray[np.float64], status: Int64s) -> None:
        """Merge the parts of a heterogeneous job, which begin together, into one job."""

        def total(values: NDArray[Any]) -> float:
            return float(values[values != UNKNOWN].sum()) if np.any(values != UNKNOWN) else UNKNOWN

        asked, shares = self._asked(parts), self._told("requested", parts)
        shares = np.where(shares > 0, shares, self._told("allocated", parts))
        known = (asked >= 0) & (shares > 0)
        if known.any():
            mean = (asked * shares)[known].sum() / shares[known].sum()
            self.asked[place] = np.floor(mean + 0.5)
        self.allocated[place] = total(self._told("allocated", parts))
        self.requested[place] = total(self._told("requested", parts))
        self.cpu[place] = total(self._told("total_cpu", parts))
        self.limit[place] = self._told("limit", parts).max()
        if (known := memory >= 0).any():
            each = held(self.rows)[parts]
            self.memory[place] = (memory * each)[known].sum() / each.sum()
        start, end, elapsed = (
            values[parts] for values in (self.times.start, self.times.end, self.times.elapsed)
        )
        began = start[start != NO_TIME]
        self.end[place] = end.max()
        if len(began):
            ends = np.where(elapsed >= 0, start + elapsed, end)[start != NO_TIME]
            self.start[place] = began.min()
            self.elapsed[place] = min(max(ends.max() - began.min(), UNKNOWN), LARGEST_EXACT)
        unfit = status[status != ENDED["COMPLETED"]]
        self.status[place] = unfit[0] if len(unfit) else ENDED["COMPLETED"]

    def trace(self, source: str, zone: tzinfo | None, queue: str) -> Trace:
        """Return the trace; ``queue`` is the column that becomes the queue."""
        jobs = self.jobs
        known = self.submit != NO_TIME
        origin = int(self.submit[known].min()) if known.any() else None
        wait, run = self._wait_and_run()
        self.run = run
        ran = run >= 0
        used = (self.cpu >= 0) & (self.allocated > 0) & (ran | (self.cpu > 0))
        mean = np.round(self.cpu / np.maximum(self.allocated, 1), DECIMALS)
        columns = {
            "number": np.arange(1, len(jobs.row) + 1),
            "submit": np.where(known, self.submit - (origin or 0), UNKNOWN),
            "wait": wait,
            "run": run,
            "allocated_processors": self.allocated,
            "average_cpu": np.where(used, mean, UNKNOWN),
            "memory": self.memory,
            "requested_processors": self.requested,
            "requested_time": self.limit,
            "requested_memory": self.asked,
            "status": self.status,
        }
        names: dict[str, dict[int, str]] = {}
        for field in NAMED:
            columns[field], table = _numbered(*self._words(field, queue))
            if table:
                names[field] = table
        placed = known & ran & (wait >= 0) & (self.allocated > 0)
        begin = (self.submit + wait)[placed]
        end = begin + run[placed]
        before = [
            (self.submit[place] + one.start, self.submit[place] + one.end, one.processors)
            for place, runs in jobs.runs.items()
            for one in runs
        ]
        since, until, held = np.array(before, np.int64).reshape(-1, 3).T
        most = most_in_use(
            np.concatenate((begin, since)),
            np.concatenate((end, until)),
            np.concatenate((self.allocated[placed], held)),
        )
        clusters = list(names.get("partition", {}).values()) if queue == "partition" else []
        header = made_header(
            jobs=len(jobs.row),
            notes=self._notes(zone, queue, bool(most)),
            unix_start=origin,
            last=min(int(end.max(initial=origin or 0)), LAST_TIME),
            zone=zone,
            processors=most or None,
            computer=clusters[0] if len(clusters) == 1 else "",
            names=names,
        )
        self._count(zone)
        site = filled(self._site(queue, zone))
        if "dependency" in site:
            of = site["cluster_name"].tolist() if "cluster_name" in site else None
            ids = JobIds(jobs.ids.tolist(), of, columns["partition"])
            submit = columns["submit"]
            ended = np.where((submit >= 0) & ran & (wait >= 0), submit + wait + run, UNKNOWN)
            columns["preceding"], columns["think_time"] = preceding_by_dependency(
                site["dependency"].tolist(), ids, columns["number"], submit, ended
            )
        return Trace(
            header,
            all_columns(columns, len(jobs.row)),
            source=source,
            names=names,
            not_read=tuple(self.rows.unused),
            extra={"job_id": jobs.ids} | site,
            repaired=jobs.repaired,
            dropped=jobs.dropped,
        )

    def _wait_and_run(self) -> tuple[Int64s, Int64s]:
        """Return wait and run times, s; -1 if unknown, and for the run time if it never ran."""
        began, over = self.start != NO_TIME, self.end != NO_TIME
        length = np.where(began & over, self.end - self.start, UNKNOWN)
        unknown = self.elapsed < 0
        backward = unknown & began & over & (length < 0)
        run = np.where(unknown, np.where(backward, UNKNOWN, length), self.elapsed)
        sure = (self.status == ENDED["COMPLETED"]) | (began & (self.allocated != 0))
        run = np.where((run > 0) | ((run == 0) & sure), run, UNKNOWN)
        run = np.where(self.rest, UNKNOWN, run)
        run = np.where((self.suspended > 0) & (run >= 0) & began & over, length, run)
        derived = np.where(over, self.end - run, NO_TIME)
        start = np.where(began, self.start, derived)
        start = np.where(run >= 0, start, np.where(over & ~backward, self.end, self.start))
        told = (start != NO_TIME) & (self.submit != NO_TIME)
        wait = np.where(told, start - self.submit, UNKNOWN)
        early = told & (wait < 0)
        tally(self.jobs.repaired, BEFORE_START, backward)
        tally(self.jobs.repaired, BEFORE_SUBMIT, early)
        return np.where(early, 0, wait), run

    def _words(self, field: str, queue: str) -> tuple[Int64s, list[str]]:
        """Return the index of each job's word, and the words of a field."""
        if field in WORDS_OF:
            codes, words = _words(self.rows, field)
            return codes[self.jobs.row], words
        column = QUEUES[queue][field == "partition"]
        if column not in self.rows.words:
            return np.full(len(self.jobs.row), -1, np.int64), []
        codes, words = self.rows.decoded(column)
        return codes[self.jobs.row], words

    def _site(self, queue: str, zone: tzinfo | None) -> dict[str, NDArray[np.object_]]:
        """Return the columns beyond the fields."""
        jobs, rows = self.jobs, self.rows
        codes, words = rows.words["state"]
        parsed = [parse_state(word) for word in words]
        by = [decode(match[1]) if (match := _BY.search(word)) else "" for word in words]
        asked, which = self._asked_in_lines()
        eligible = self.times.eligible[jobs.first]
        known = (eligible != NO_TIME) & (self.submit != NO_TIME)
        found = {
            "final_state": np.array(parsed, np.object_)[codes[jobs.row]],
            "cancelled_by": np.array(by, np.object_)[codes[jobs.row]],
            "eligible": texts_of(np.where(known, np.maximum(eligible - self.submit, 0), 0)),
            "suspended": texts_of(self.suspended),
            "restarts": texts_of(jobs.restarts),
            "lost_work": texts_of(jobs.lost_work),
            "energy": texts_of(self.energy),
            "nodes": texts_of(np.where(self.run >= 0, self._told("nodes", jobs.row), 0)),
            "dependency": np.array([one.dependency for one in asked], np.object_)[which],
            "begin": texts_of(self._begin(asked, which, zone)),
            "throttle": texts_of(np.array([one.throttle for one in asked], np.int64)[which]),
            "exclusive": np.array(["yes" if a.exclusive else "" for a in asked], np.object_)[which],
        }
        for column, name in SITE_WORDS.items():
            if column.lower() in rows.words:
                found[name] = self._texts(column.lower())
        # The one of the three that is not a field.
        other = "cluster" if queue == "qos" else "qos"
        if other in rows.words:
            found["cluster_name" if other == "cluster" else other] = self._texts(other)
        components = np.ones(len(jobs.row), np.int64)
        for place, rows_of_parts in jobs.parts.items():
            components[place] = len(rows_of_parts)
        found[COMPONENTS] = texts_of(np.where(components > 1, components, 0))
        found[RUNS] = np.full(len(jobs.row), "", np.object_)
        for place, runs in jobs.runs.items():
            found[RUNS][place] = text_of(runs)
        lines = [one.columns for one in asked]
        return found | request_columns(rows, jobs.row, list(jobs.parts), lines, which, queue)

    def _texts(self, column: str) -> NDArray[np.object_]:
        """Return a column of words, empty where nothing is known."""
        codes, words = self.rows.decoded(column)
        texts = ["" if text in EMPTY_TEXTS else text for text in words]
        return np.asarray(np.array(texts, np.object_)[codes[self.jobs.row]])

    def _begin(self, asked: list[Asked], which: Int64s, zone: tzinfo | None) -> Int64s:
        """Return the earliest starts that submit lines ask for, s after the submission."""
        later = np.array([one.begin for one in asked], np.int64)[which]
        told = [parse_time(one.moment.encode()) if one.moment else NO_TIME for one in asked]
        unix = to_unix(np.array(told, np.int64), zone).unix[which]
        known = (unix != NO_TIME) & (self.submit != NO_TIME)
        return np.where(known, np.maximum(unix - self.submit, 0), later)

    def _asked_in_lines(self) -> tuple[list[Asked], Int64s]:
        """Return what submit lines ask for, and which of these is that of each job."""
        if SUBMIT_LINE not in self.rows.words:
            return [Asked()], np.zeros(len(self.jobs.row), np.int64)
        codes, lines = self.rows.decoded(SUBMIT_LINE)
        return [asked_in(line) for line in lines], codes[self.jobs.row].astype(np.int64)

    def _count(self, zone: tzinfo | None) -> None:
        """Count the choices made for ambiguous and nonexistent times."""
        row, times = self.jobs.row, self.times
        if zone is None:
            tally(self.jobs.repaired, NO_ZONE, times.local[row])
        tally(self.jobs.repaired, FIRST_SHOWN, times.first_shown[row])
        tally(self.jobs.repaired, LAST_SHOWN, times.last_shown[row])
        tally(self.jobs.repaired, NEVER_SHOWN, times.skipped[row])
        if "reqmem" in self.rows.words:
            codes, words = self.rows.words["reqmem"]
            rounded = np.array([_ROUNDED.fullmatch(word) is not None for word in words], bool)
            tally(self.jobs.repaired, ROUNDED, rounded[codes[row]])

    def _notes(self, zone: tzinfo | None, queue: str, sized: bool) -> list[str]:
        """Return notes for the header on how the trace was made."""
        line, part = (CALLED[name] for name in QUEUES[queue])
        notes = [
            "made from the accounting of Slurm, written by sacct",
            "submissions are counted from the first one; jobs are numbered in their order",
            "a job that never started has no run time, and waited until its end",
            "memory is that of all tasks of the largest step of a job, per processor",
            "requested memory is per processor",
            f"queue is Slurm's {line}, partition its {part}",
        ]
        if zone is None and self.times.local[self.jobs.row].any():
            notes.append("the log tells no time zone; times were taken as UTC")
        return notes + ([SIZE_NOTE] if sized else [])


def _numbered(codes: Int64s, words: list[str]) -> tuple[Int64s, dict[int, str]]:
    """Return words as numbers, in the order in which jobs use them, and their names."""
    found, first = np.unique(codes, return_index=True)
    found = found[np.argsort(first)]
    found = found[found >= 0]
    places: dict[str, int] = {}
    place = np.full(len(words) + 1, -1)  # the last is that of no word
    place[found] = [places.setdefault(words[code], len(places)) for code in found]
    return numbered(place[codes], list(places))
