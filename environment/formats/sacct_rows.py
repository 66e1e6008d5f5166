"""Rows of Slurm's accounting as jobs: steps, runs of requeued jobs, arrays, heterogeneous jobs.

- Steps (``77.batch``, ``77.extern``, ``77.0``, ``77.interactive``) tell how much memory their job
  used. Steps alone, without a row of their job, are no job.
- Rows of one number are one job if the earlier run ended as those that Slurm runs again do, and the
  user is the same: the last run counts, and the first submission. Otherwise the number was used
  again. Rows that begin alike are one run told twice, as in files of two months put together.
- A job that is not over is dropped.
- What is left of an array (``77_[6-10%2]``) and was cancelled stays as one job; the other tasks
  that never started are dropped.
- The parts of a heterogeneous job (``77+0``, ``77+1``) are one job with all their processors.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from environment.formats.sacct_table import Rows
from environment.formats.sacct_times import NO_TIME
from environment.formats.sacct_values import ENDED, RUN_AGAIN, count_tasks
from environment.jobs import Int64s

#: Why rows are dropped or jobs repaired.
STEPS_ALONE = "steps alone, without a row of their job"
TOLD_TWICE = "the same run told twice"
NEVER_STARTED = "tasks of an array that never started, told in one row: one of them kept"
RAN_AGAIN = "ran again after it failed or was preempted: the last run, from the first submission"
PARTS = "parts of a heterogeneous job taken as one, processors added up"


@dataclass
class Jobs:
    """Rows of jobs that became jobs, one after the other.

    Attributes
    ----------
    row
        The row of the text that tells of the job, as a place in :class:`Rows`, shape (jobs,).
    submit
        When it was first submitted, shape (jobs,).
    parts
        For each heterogeneous job its place among the jobs and its rows.
    ids
        Number of each job, as text.
    repaired, dropped
        How many jobs were, by reason.
    """

    row: Int64s
    submit: Int64s
    parts: dict[int, Int64s]
    ids: NDArray[np.object_]
    repaired: Counter[str]
    dropped: Counter[str]


def job_keys(rows: Rows) -> tuple[Int64s, Int64s]:
    """Return what is the same for rows of one job, of jobs and steps: number and cluster."""
    job, step = rows.job, rows.step_job
    if "cluster" not in rows.words:
        return job, step
    codes, names = rows.words["cluster"]
    many = len(names)
    if np.all(codes == codes[:1]):  # steps need not say which
        return job, step
    return job * many + codes, step * many + rows.step_cluster


def with_steps(rows: Rows) -> tuple[NDArray[np.float64], int]:
    """Return the memory of each row of a job with its steps, kB, and how many jobs are steps alone.

    A step belongs to the last row of its job before it, else to the first after it.
    """
    memory = rows.memory.copy()
    keys, step_keys = job_keys(rows)
    if not len(step_keys):
        return memory, 0
    key = np.concatenate((keys, step_keys))
    order = np.lexsort((np.concatenate((rows.place, rows.step_place)), key))
    key = key[order]
    jobs = len(keys)
    is_job = order < jobs
    at = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_job, at, -1))
    after = np.minimum.accumulate(np.where(is_job, at, len(order))[::-1])[::-1]
    steps = np.flatnonzero(~is_job)
    before, after = before[steps], np.minimum(after[steps], len(order) - 1)
    has_before = (before >= 0) & (key[before] == key[steps])
    owner = np.where(has_before, before, after)
    owned = is_job[owner] & (key[owner] == key[steps])
    told = rows.step_memory[order[steps] - jobs]
    np.maximum.at(memory, order[owner[owned]], told[owned])
    return memory, len(np.unique(key[steps[~owned]]))


def find_jobs(rows: Rows, states: list[str], user: Int64s, submit: Int64s, start: Int64s) -> Jobs:
    """Return which rows are jobs.

    Parameters
    ----------
    rows
        What the text holds.
    states
        What the words of column ``state`` mean.
    user
        The user of each row.
    submit, start
        When, s since 1970.
    """
    repaired: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    state = rows.words["state"][0]
    keys, _ = job_keys(rows)
    order = np.lexsort((rows.place, submit, keys))  # the runs of each job, one after the other
    link = np.zeros(len(order), bool)
    one, other = order[:-1], order[1:]
    same = keys[one] == keys[other]
    if same.any():
        again = np.array([name in RUN_AGAIN for name in states], bool)[state]
        twice = same & (user[one] == user[other]) & (submit[one] != NO_TIME)
        twice &= (submit[one] == submit[other]) & (start[one] == start[other])
        twice &= (start[one] != NO_TIME) | ~again[one]
        if twice.any():
            dropped[TOLD_TWICE] = int(twice.sum())
            order = order[np.concatenate((~twice, [True]))]
            one, other = order[:-1], order[1:]
        link = np.zeros(len(order), bool)
        link[1:] = (keys[one] == keys[other]) & (user[one] == user[other]) & again[one]
    first = np.flatnonzero(~link)  # where each job begins
    last = np.append(first[1:], len(order))[: len(first)] - 1  # none where steps are alone
    row, when, runs = order[last], submit[order[first]], last - first + 1
    ids = np.array(rows.ids, np.object_)[rows.job[row]]
    del order, link

    told = state[row]
    ended = np.array([name in ENDED for name in states], bool)[told]
    whole = np.ones(len(row), bool)  # all but the later parts of heterogeneous jobs
    leaders: dict[int, Int64s] = {}
    for places in _parts(rows, row, when, ids):
        leader = places[0]
        whole[places[1:]] = False
        ids[leader] = ids[leader].partition("+")[0]
        unfinished = [place for place in places if not ended[place]]
        if unfinished:
            told[leader], ended[leader] = told[unfinished[0]], False
        else:
            leaders[leader] = row[places]
    for place in np.flatnonzero(~ended & whole):
        dropped[f"state {states[told[place]]}"] += count_tasks(ids[place])
    keep = ended & whole
    bracket = np.array(["[" in text for text in rows.ids], bool)[rows.job[row]]
    for place in np.flatnonzero(bracket & keep):
        if (rest := count_tasks(ids[place]) - 1) > 0:
            dropped[NEVER_STARTED] += rest
    if requeued := int(np.count_nonzero(keep & (runs > 1))):
        repaired[RAN_AGAIN] = requeued
    if leaders:
        repaired[PARTS] = len(leaders)
    kept = np.flatnonzero(keep)
    kept = kept[np.lexsort((rows.place[row[kept]], when[kept]))]
    position = np.full(len(keep), -1)
    position[kept] = np.arange(len(kept))
    return Jobs(
        row[kept],
        when[kept],
        {int(position[leader]): found for leader, found in leaders.items()},
        ids[kept],
        repaired,
        dropped,
    )


def _parts(rows: Rows, row: Int64s, submit: Int64s, ids: NDArray[np.object_]) -> list[list[int]]:
    """Return the places of the parts of each heterogeneous job that has several, in their order."""
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
