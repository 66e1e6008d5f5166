"""What became of the jobs of a submission, for ``hpcrowd explain --jobs``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.decisions import Kind, What
from environment.clock import moment
from environment.jobs import UNKNOWN, State
from environment.quantities import format_duration, plural

if TYPE_CHECKING:
    from agents.decision_words import Decision
    from analysis.run import Run

#: Most jobs of a unit that have a line each.
MOST = 10


class OwnJobs:
    """The jobs of a user, by the units that its decisions name.

    Parameters
    ----------
    run
        The run.
    user
        Its number.
    """

    def __init__(self, run: Run, user: int) -> None:
        self.run = run
        self._rows: dict[tuple[Kind, int], list[int]] = defaultdict(list)
        jobs = run.jobs
        mine = np.flatnonzero(jobs.user == user)
        mine = mine[np.argsort(jobs.submit[mine], kind="stable")]
        for kind, column in ((Kind.SESSION, jobs.session), (Kind.BATCH, jobs.batch)):
            for row, unit in zip(mine.tolist(), column[mine].tolist(), strict=True):
                self._rows[kind, unit].append(row)
        lost = () if run.decisions is None else run.decisions.of_user(user)
        self._stopped = {one.cause for one in lost if one.what == What.LOST}
        # The accounts of a grid end with that of all its jobs.
        self._clusters = [*run.sites][:-1]

    def of(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the jobs of a submission by their columns, s; none for other decisions."""
        if decision.what != What.SUBMITTED:
            return []
        jobs = self.run.jobs
        return [
            {
                "number": int(jobs.number[row]),
                "processors": int(jobs.processors[row]),
                "submit": int(jobs.submit[row]),
                "start": int(jobs.start[row]),
                "end": int(jobs.end[row]),
                "state": State(jobs.state[row]).name.lower(),
                "cluster": self._cluster(int(jobs.cluster[row])),
            }
            for row in self._rows[decision.kind, decision.unit]
        ]

    def lines(self, decision: Decision) -> list[str]:
        """Return a line for each job of a submission, and one for those that are too many."""
        found = self.of(decision)
        lines = [self._line(one) for one in found[:MOST]]
        if rest := found[MOST:]:
            last = max(one["end"] for one in rest)
            over = "" if last == UNKNOWN else f", the last one until {moment(self.run.clock, last)}"
            lines.append(f"and {plural(len(rest), 'job')} more{over}")
        return lines

    def _cluster(self, number: int) -> str:
        return self._clusters[number] if 0 <= number < len(self._clusters) else ""

    def _line(self, job: dict[str, Any]) -> str:
        where = f" on {job['cluster']}" if job["cluster"] else ""
        name = f"job {job['number']}"
        if job["start"] == UNKNOWN:
            return f"{name}: {job['state']}"
        waited = f"waited {format_duration(job['start'] - job['submit'])}"
        if job["number"] in self._stopped:
            again = moment(self.run.clock, job["submit"])
            waited = f"was stopped, submitted again {again}, {waited}"
        if job["end"] == UNKNOWN:
            return f"{name}: {waited}, then ran{where}, {job['state']}"
        ran = f"ran {format_duration(job['end'] - job['start'])}{where}"
        state = "" if job["state"] == "completed" else f", {job['state']}"
        return f"{name}: {waited}, {ran} until {moment(self.run.clock, job['end'])}{state}"
