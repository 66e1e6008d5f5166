"""What jobs ask of a machine of nodes, beyond processors and time.

One row of numbers per job, in the order of the table of jobs, as :class:`Ask` says; texts such as
features are numbers of :attr:`Requests.words`. Nothing asked is :data:`UNKNOWN`.

Requests of a job follow when it gets another number of processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable, MatrixRow
from hpcrowd.environment.limits.numbers import check_memory


class Ask(MatrixRow):
    """Rows of the matrix of requests; sbatch(1) names the option in parentheses."""

    NODES = 0, "least nodes (--nodes)"
    MAX_NODES = 1, "most nodes (--nodes=MIN-MAX)"
    TASKS = 2, "tasks (--ntasks)"
    TASKS_PER_NODE = 3, "tasks on a node (--ntasks-per-node)"
    CORES_PER_TASK = 4, "cores of a task (--cpus-per-task)"
    MEMORY_PER_NODE = 5, "MB on each node (--mem); 0: all of it"
    MEMORY_PER_CORE = 6, "MB for each core (--mem-per-cpu)"
    GPUS = 7, "GPUs of the job (--gpus)"
    GPUS_PER_NODE = 8, "GPUs on each node (--gres=gpu:N, --gpus-per-node)"
    GPUS_PER_TASK = 9, "GPUs of each task (--gpus-per-task)"
    GPU_TYPE = 10, "word: type of GPU"
    FEATURES = 11, "word: features, such as a&b or a|b (--constraint)"
    EXCLUSIVE = 12, "1: whole nodes (--exclusive)"
    PARTITIONS = 13, "word: partitions, separated by commas (--partition)"
    RESERVATION = 14, "word: reservation (--reservation)"
    QOS = 15, "word: QOS (--qos)"
    ACCOUNT = 16, "word: account (--account)"
    NICE = 17, "taken off its priority (--nice); UNKNOWN is 0"
    ARRAY = 18, "number that the tasks of an array share"
    TASK = 19, "task of the array (--array)"
    THROTTLE = 20, "tasks of the array that may run at once (--array=...%N)"
    NO_REQUEUE = 21, "1: not requeued when preempted (--no-requeue)"
    BEGIN = 22, "s since the origin; not before (--begin)"


#: Rows whose numbers are places in a list of words.
WORDS = (Ask.GPU_TYPE, Ask.FEATURES, Ask.PARTITIONS, Ask.RESERVATION, Ask.QOS, Ask.ACCOUNT)

#: Rows that hold for one date only, so that a job that is submitted again later lacks them.
DATED = (Ask.RESERVATION, Ask.BEGIN)


class Requests:
    """What each job of a table asks for.

    Parameters
    ----------
    size
        Jobs; they ask for nothing at first.

    Attributes
    ----------
    words
        The texts by row; the number in the matrix is the place in the list.

    Notes
    -----
    :meth:`append` may move the numbers: do not keep rows of the matrix while jobs are added.
    """

    def __init__(self, size: int = 0) -> None:
        check_memory(
            f"what {size:,} jobs ask for",
            size * len(Ask) * 8,
            "take a part of the trace, fewer jobs or fewer days",
        )
        self._matrix: Int64s = np.full((len(Ask), size), UNKNOWN, np.int64)
        self._size = size
        self.words: dict[Ask, list[str]] = {ask: [] for ask in WORDS}

    @property
    def matrix(self) -> Int64s:
        """A view of the numbers, shape (rows of :class:`Ask`, jobs)."""
        return self._matrix[:, : self._size]

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<Requests of {self._size:,} jobs>"

    def __getitem__(self, ask: Ask) -> Int64s:
        """Return the numbers of one row, shape (jobs,)."""
        return self._matrix[ask, : self._size]

    def number(self, ask: Ask, word: str) -> int:
        """Return the number of a text, which is added if it is new; -1 for an empty one."""
        if not word:
            return UNKNOWN
        words = self.words[ask]
        if word not in words:
            words.append(word)
        return words.index(word)

    def word(self, ask: Ask, row: int) -> str:
        """Return the text that a job asks for; empty for none."""
        number = int(self[ask][row])
        return "" if number == UNKNOWN else self.words[ask][number]

    def texts(self, ask: Ask) -> list[str]:
        """Return the texts that all jobs ask for in one of :data:`WORDS`; empty for none."""
        words = [*self.words[ask], ""]  # the last one is that of UNKNOWN
        return [words[number] for number in self[ask].tolist()]

    def asked(self) -> list[Ask]:
        """Return the rows in which some job asks for something."""
        return [ask for ask in Ask if np.any(self[ask] != UNKNOWN)]

    def copy(self) -> Requests:
        """Return independent requests of the same jobs."""
        return self.take(np.arange(self._size))

    def take(self, rows: Int64s) -> Requests:
        """Return independent requests of some of the jobs, in the order of ``rows``."""
        other = Requests()
        other._matrix = self.matrix[:, rows]
        other._size = len(rows)
        other.words = {ask: list(words) for ask, words in self.words.items()}
        return other

    def append(self, count: int) -> None:
        """Add jobs that ask for nothing yet."""
        last = self._size + count
        if last > self._matrix.shape[1]:
            grown = np.full((len(Ask), max(last, 2 * self._size, 256)), UNKNOWN, np.int64)
            grown[:, : self._size] = self.matrix
            self._matrix = grown
        self._size = last

    def repeat(self, first: int, other: Requests) -> None:
        """Let the jobs from a row on ask for the same as all jobs of ``other``, in order.

        Without what holds for one date only, see :data:`DATED`. Tasks of an array are tasks of an
        array of their own, which gets the number of the row of the first of them: no array that was
        numbered in the order of the jobs has it.
        """
        mine = other.translated(self)
        mine[list(DATED)] = UNKNOWN
        arrays, place, task = np.unique(mine[Ask.ARRAY], return_index=True, return_inverse=True)
        mine[Ask.ARRAY] = np.where(arrays == UNKNOWN, UNKNOWN, first + place)[task]
        self.matrix[:, first : first + len(other)] = mine

    def translated(self, into: Requests) -> Int64s:
        """Return a copy of :attr:`matrix` with the numbers that ``into`` has for the words."""
        matrix = self.matrix.copy()
        for ask, words in self.words.items():
            if words and words != into.words[ask]:
                places = [into.number(ask, word) for word in words]
                matrix[ask] = np.array([*places, UNKNOWN], np.int64)[matrix[ask]]
        return matrix

    def set(self, row: int, ask: Ask, value: Any) -> None:
        """Set what a job asks for: a number, or the text of one of :data:`WORDS`."""
        self[ask][row] = self.number(ask, value) if isinstance(value, str) else value

    def set_texts(self, ask: Ask, texts: Sequence[str]) -> None:
        """Set the texts that all jobs ask for in one of :data:`WORDS`; empty for none."""
        places = {word: place for place, word in enumerate(self.words[ask])} | {"": UNKNOWN}
        for text in dict.fromkeys(texts):
            if text not in places:
                places[text] = len(self.words[ask])
                self.words[ask].append(text)
        self[ask][:] = [places[text] for text in texts]


def joined(parts: Sequence[Requests | int]) -> Requests:
    """Return the requests of several tables, one after the other.

    Parameters
    ----------
    parts
        Of each table its requests; its number of jobs if they ask for nothing. Arrays of later
        tables get higher numbers.
    """
    sizes = [part if isinstance(part, int) else len(part) for part in parts]
    found, first = Requests(sum(sizes)), 0
    for part, size in zip(parts, sizes, strict=True):
        if isinstance(part, Requests):
            mine = part.translated(found)
            tasks = mine[Ask.ARRAY] != UNKNOWN
            mine[Ask.ARRAY, tasks] += found[Ask.ARRAY].max(initial=UNKNOWN) + 1
            found.matrix[:, first : first + size] = mine
        first += size
    return found


def resize(jobs: JobTable, row: int, before: int) -> None:
    """Bring a job's request in line with its processors, which were ``before``.

    Nodes shrink in proportion, at least to one. Tasks keep their cores if that divides the
    processors; else they get the largest number that divides both. GPUs per node or task follow
    nodes and tasks; those of the job stay.
    """
    requests, after = jobs.requests, int(jobs.processors[row])
    if requests is None or after == before:
        return

    def asked(ask: Ask) -> int:
        return int(requests[ask][row])

    for ask in (Ask.NODES, Ask.MAX_NODES):
        if asked(ask) > 0:
            requests.set(row, ask, max(-(-asked(ask) * after // before), 1))
    cores = max(asked(Ask.CORES_PER_TASK), 1)
    per_task = gcd(cores, after)
    tasks = after // per_task
    if asked(Ask.CORES_PER_TASK) > 0:
        requests.set(row, Ask.CORES_PER_TASK, per_task)
    if asked(Ask.TASKS) > 0:
        requests.set(row, Ask.TASKS, tasks)
    per_node, nodes = asked(Ask.TASKS_PER_NODE), asked(Ask.NODES)
    if per_node > 0:
        on_each = -(-tasks // nodes) if nodes > 0 else min(per_node * cores // per_task, tasks)
        requests.set(row, Ask.TASKS_PER_NODE, on_each)


def asked_memory(jobs: JobTable, row: int) -> dict[Ask, int]:
    """Return the MB per node or per core that a job asks for; none if it asks for none."""
    requests = jobs.requests
    found = {}
    for ask in (Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE):
        memory = -1 if requests is None else int(requests[ask][row])
        if memory >= 0:
            found[ask] = memory
    if not found and jobs.requested_memory[row] > 0:
        found[Ask.MEMORY_PER_CORE] = -(-int(jobs.requested_memory[row]) // 1024)
    return found
