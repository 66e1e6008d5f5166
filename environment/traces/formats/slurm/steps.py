"""The memory and energy of jobs from the rows of their steps.

Steps (``77.batch``, ``77.extern``, ``77.0``, ``77.interactive``) have the memory that their job
used, and its energy if the row of the job lacks that. MaxRSS is that of the largest task of a step,
so a step used at most MaxRSS of each of its NTasks; a job used that of its largest step. Where
NTasks is unknown one task counts: the job used at least that. Steps without a row of their job are
dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.traces.formats.common.names import LARGEST_EXACT
from hpcrowd.environment.traces.formats.slurm.table import Rows

#: Why rows are dropped.
STEPS_ALONE = "steps without a row of their job"


def job_keys(rows: Rows) -> tuple[Int64s, Int64s]:
    """Return keys, from number and cluster, that rows of one job share: of jobs and of steps."""
    job, step = rows.job, rows.step_job
    if "cluster" not in rows.words:
        return job, step
    codes, names = rows.words["cluster"]
    many = len(names)
    if np.all(codes == codes[:1]):  # one cluster: steps need not name it
        return job, step
    return job * many + codes, step * many + rows.step_cluster


def with_steps(rows: Rows, counts: Int64s) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return what the steps of jobs used, and the number of jobs without a row.

    A step belongs to the last row of its job before it, else to the first after it.

    Parameters
    ----------
    rows
        The rows.
    counts
        The row that counts of all rows of a run, as
        :func:`~hpcrowd.environment.traces.formats.slurm.jobs.copies` gives it; it has their steps.

    Returns
    -------
    memory, energy
        Of each job row with its steps: the memory of the largest step, kB per processor; J, see
        :func:`_with_energy`; -1 if unknown.
    alone
        How many jobs have steps but no row.
    """
    processors = held(rows)
    memory, energy = np.full(len(counts), -1.0), np.full(len(counts), -1, np.int64)
    np.maximum.at(memory, counts, _shared(rows.memory, rows.tasks, processors[counts]))
    np.maximum.at(energy, counts, rows.energy)
    keys, step_keys = job_keys(rows)
    if not len(step_keys):
        return memory, energy.astype(np.float64), 0
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
    step, row = (order[steps] - jobs)[owned], counts[order[owner[owned]]]
    of_steps = _shared(rows.step_memory[step], rows.step_tasks[step], processors[row])
    np.maximum.at(memory, row, of_steps)
    return memory, _with_energy(rows, energy, step, row), len(np.unique(key[steps[~owned]]))


def held(rows: Rows) -> Int64s:
    """Return over how many processors the memory of job rows is averaged: at least 1."""
    nothing = np.zeros(len(rows.job), np.int64)
    allocated, requested = (rows.numbers.get(key, nothing) for key in ("allocated", "requested"))
    return np.maximum(np.where(allocated > 0, allocated, requested), 1)


def _shared(memory: NDArray[Any], tasks: Int64s, processors: Int64s) -> NDArray[np.float64]:
    """Return memory per processor, given that of the largest task; -1 if unknown."""
    tasks = np.maximum(tasks, 1)
    shared = np.where(tasks == processors, memory, memory * tasks / processors)
    return np.where((memory >= 0) & (shared <= LARGEST_EXACT), shared, -1.0)


def _with_energy(rows: Rows, own: Int64s, step: Int64s, row: Int64s) -> NDArray[np.float64]:
    """Return the energy of each job row, J: its own, else that of its steps; -1 if unknown.

    Steps are added up, but where there is a step ``extern`` it counts alone: it lasts as long as
    the job, and meters are read per node (``_internal_step_complete`` in Slurm's ``step_mgr.c``).
    A step that is there twice counts once.

    Parameters
    ----------
    rows
        The rows.
    own
        Energy in the rows of jobs, J.
    step, row
        Places of steps, and the job row that each belongs to.
    """
    codes, names = rows.step_name
    once, which = np.unique(row * len(names) + codes[step], return_inverse=True)
    joules = np.zeros(len(once))
    np.maximum.at(joules, which, rows.step_energy[step])
    row, name = once // len(names), once % len(names)
    total = np.bincount(row, joules, len(own))
    is_extern = np.array([one == b"extern" for one in names], bool)[name]
    extern = np.bincount(row, np.where(is_extern, joules, 0), len(own))
    of_steps = np.where(extern > 0, extern, total)
    energy = np.where(own > 0, own, of_steps)
    return np.where(energy > 0, energy, float(UNKNOWN))
