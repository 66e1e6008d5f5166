"""Effect of reactions on the work: lost, moved, switched, added; job by job and in total.

Work is processors times run time, in whole processor-seconds: nothing is rounded. For every run::

    recorded work = work of all jobs as they are now + lost - added - returned

The left side is what the jobs needed before any user reacted, the first term on the right what they
need afterwards; renounced jobs need none. Returned is lost work that came back as new jobs. If
every submitted job has run, the first term is the work done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import numpy as np
from numpy.typing import NDArray

from hpcrowd.analysis.metrics import words_of
from hpcrowd.analysis.parts import RunPart, Shown, read_as, read_table
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import JobTable, State
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.parts import Note
    from hpcrowd.agents.behaviours.user import User
    from hpcrowd.analysis.run import Run  # circle: for its type only


#: Meaning and unit of each column of ``reactions.parquet``, which has a row per job and reaction.
MEANING = {
    "number": "job number, as in jobs.parquet",
    "user": "user number; -1 unknown",
    "reaction": "name of the reaction",
    "response": "delay, degrade, reconfigure, renounce, switch, switch-partition, fewer-gpus, "
    "less-time, less-memory, cut, leave, or rebound for work that came back as a new job",
    "decided": "s since the origin; when the unit of work was due, the job left its queue, or the "
    "new job was submitted",
    "processors": "processors before the reaction; 0 for a new job",
    "run_time": "s; run time before the reaction; 0 for a new job",
    "processors_after": "processors after it; 0 if renounced",
    "run_time_after": "s; run time after it; 0 if renounced",
    "delay": "s; how much later the job was submitted because of the reaction",
    "cluster": "name of the cluster it was moved to; empty if it stayed",
    "waited": "s; how long it had waited, if it left its queue",
    "request": "what else it asked for otherwise: partition, gpus, requested_time and so on; task "
    "for a new piece of a task, rebound for work that came back; empty for nothing",
    "request_before": "that before the reaction: a name, GPUs, s or MB",
    "request_after": "and after it; for a new job, the number of the job that was cut or changed",
}

#: Fields of :func:`account` and of each reaction in it, with their meaning.
ACCOUNTS = {
    "jobs": "jobs that reactions changed",
    "users": "users of these jobs",
    "work_lost_processor_s": "work no longer done: degraded and renounced jobs",
    "work_returned_processor_s": "lost work that came back later as new jobs (rebound)",
    "jobs_returned": "these new jobs",
    "work_moved_processor_s": "work submitted later",
    "delay_mean_s": "mean delay of the jobs submitted later; null if none was",
    "delay_max_s": "longest delay; null if none was",
    "work_switched_processor_s": "work sent to other clusters, before conversion to their speed",
    "jobs_left_queue": "jobs that left their queue before they started",
    "waited_in_vain_s": "waits of these jobs until they left",
    "work_added_processor_s": "additional work, negative if less: reconfigured jobs, jobs with "
    "fewer GPUs, jobs on clusters of another speed, and what the pieces of a task need more",
}

#: Columns of texts.
TEXTS = ("reaction", "response", "cluster", "request", "request_before", "request_after")

#: Responses that remove work for good; other responses add (or save) work.
LOSING = ("degrade", "renounce", "leave")

#: The response of a new job that is lost work that came back.
REBOUND = "rebound"


class Reactions(RunPart):
    """The effects of reactions; ``rows`` has a note for each job that one changed.

    Totals are of the simulated jobs, if these are given.
    """

    name, key, file, meaning = "reactions", "reactions", "reactions", MEANING
    title = "Reactions of users"

    def __init__(
        self,
        account: Mapping[str, Any] | None = None,
        rows: Sequence[Note] | None = None,
        jobs: JobTable | None = None,
    ) -> None:
        super().__init__(account, rows)
        self._jobs = jobs

    @override
    def totals(self) -> dict[str, Any]:
        return {} if self._jobs is None or not self.rows else account(self._jobs, self.rows)

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        return [
            f"{name}: {plural(each['jobs'], 'job')} of {plural(each['users'], 'user')}"
            for name, each in self.account.get("by_reaction", {}).items()
        ]

    @override
    def effects(self) -> list[tuple[str, str, str]]:
        rows = []
        for name, meaning in ACCOUNTS.items():
            value = self.account.get(name)
            if not value:
                continue
            if name.endswith("_processor_s"):
                hours = value / HOUR
                text = f"{hours:,.{2 if abs(hours) < 10 else 1}f} processor-h"
            elif name.endswith("_s"):
                text = format_duration(value)
            else:
                text = f"{value:,}"
            rows.append((words_of(f"reactions.{name}"), text, meaning))
        return rows

    @override
    def reported(self, run: Run) -> list[Shown]:
        rows = [(meaning[0].upper() + meaning[1:], value) for _, value, meaning in self.effects()]
        return [Shown(("", "all reactions"), rows)]

    @override
    def check(self) -> None:
        self.effects()
        self.lines({})

    @override
    def resized(self, jobs: JobTable) -> NDArray[np.bool_]:
        changed = np.zeros(len(jobs), bool)
        for note in self.rows:
            if note.processors_after and note.processors_after != note.processors:
                changed[note.row] = True
        return changed

    @override
    def columns(self, jobs: JobTable) -> dict[str, Any]:
        if not self.rows:
            return {}
        import pyarrow as pa

        rows = np.array([note.row for note in self.rows], np.int64)
        columns: dict[str, Any] = {"number": jobs.number[rows], "user": jobs.user[rows]}
        for name in MEANING.keys() - columns.keys():
            values = [getattr(note, name) for note in self.rows]
            if name in TEXTS:
                columns[name] = pa.array(values, pa.string()).dictionary_encode()
            else:
                columns[name] = np.array(values, np.int64)
        return {name: columns[name] for name in MEANING}

    @override
    @classmethod
    def read_rows(cls, path: Path, jobs: JobTable) -> list[Note]:
        """Return the notes in a file, for the jobs of the same run.

        Raises
        ------
        ResultsError
            When it is not such a file, or has jobs that are not in the table.
        """
        import pyarrow.parquet as pq

        from hpcrowd.agents.behaviours.parts import Note

        with read_as("reactions", path):
            there = pq.read_schema(path).names
        # Files of earlier versions know of no requests.
        names = [name for name in MEANING if name in there or "request" not in name]
        found = read_table("reactions", path, names)
        columns: dict[str, list[Any]] = dict.fromkeys(MEANING, [""] * found.num_rows)
        columns |= {name: found.column(name).to_pylist() for name in names}
        row_of = {number: row for row, number in enumerate(jobs.number.tolist())}
        missing = [number for number in columns["number"] if number not in row_of]
        if missing:
            raise ResultsError(f"{path}: job {missing[0]} is not in jobs.parquet; run it again")
        columns["row"] = [row_of[number] for number in columns["number"]]
        fields = (columns[name] for name in Note._fields)
        return [Note(*values) for values in zip(*fields, strict=True)]


def notes_of(users: Iterable[User]) -> list[Note]:
    """Return the notes of all users, by second of the decision, then by job, then in order."""
    notes = [note for user in users for note in user.notes]
    return sorted(notes, key=lambda note: (note.decided, note.row))


def account(jobs: JobTable, notes: Sequence[Note]) -> dict[str, Any]:
    """Return the totals over all reactions and for each one, fit for JSON.

    Parameters
    ----------
    jobs
        The simulated jobs.
    notes
        The effects of reactions, see :func:`notes_of`.

    Returns
    -------
    dict
        The keys of :data:`ACCOUNTS`; ``work_recorded_processor_s``, the work before any reaction;
        ``work_done_processor_s``, the work of the jobs that ran; and ``by_reaction``, the keys of
        :data:`ACCOUNTS` for each reaction by name. A job changed by several reactions counts for
        each of them, with the work that the earlier reactions left.
    """
    whole = _sums(jobs, notes)
    ran = jobs.over
    by_name: dict[str, list[Note]] = {}
    for note in notes:
        by_name.setdefault(note.reaction, []).append(note)
    return {
        **whole,
        "work_recorded_processor_s": needed(jobs, notes)
        + whole["work_lost_processor_s"]
        - whole["work_added_processor_s"]
        - whole["work_returned_processor_s"],
        "work_done_processor_s": int((jobs.processors * jobs.lasted)[ran].sum()),
        "by_reaction": {name: _sums(jobs, by_name[name]) for name in sorted(by_name)},
    }


def needed(jobs: JobTable, notes: Sequence[Note]) -> int:
    """Return the work of jobs as they are now, whether they ran or not, in processor-seconds.

    Renounced jobs need none, nor do those that left the queue for good.
    """
    wanted = jobs.state != State.RENOUNCED
    wanted[[note.row for note in notes if note.response == "leave"]] = False
    return int((jobs.processors * jobs.run_time)[wanted].sum())


def _sums(jobs: JobTable, notes: Sequence[Note]) -> dict[str, Any]:
    lost = moved = switched = added = returned = 0
    delays = []
    back = [note for note in notes if note.response == REBOUND]
    for note in notes:
        before = note.processors * note.run_time
        after = note.processors_after * note.run_time_after
        if note.response in LOSING:
            lost += before - after
        elif note.response == REBOUND:
            returned += after
        else:
            added += after - before
        if note.delay:
            moved += after
            delays.append(note.delay)
        if note.cluster:
            switched += before
    rows = np.array(sorted({note.row for note in notes} - {note.row for note in back}), np.int64)
    return {
        "jobs": len(rows),
        "users": len(np.unique(jobs.user[rows])),
        "work_lost_processor_s": lost,
        "work_returned_processor_s": returned,
        "jobs_returned": len(back),
        "work_moved_processor_s": moved,
        "delay_mean_s": sum(delays) / len(delays) if delays else None,
        "delay_max_s": max(delays, default=None),
        "work_switched_processor_s": switched,
        "jobs_left_queue": len({note.row for note in notes if note.waited}),
        "waited_in_vain_s": sum(note.waited for note in notes),
        "work_added_processor_s": added,
    }
