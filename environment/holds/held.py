"""Holds jobs back in a run until their rules let them into the queue.

Held jobs are submitted: their users wait for them, and may take them back. They are in no queue,
and schedulers do not see them. A job whose dependency can no longer be satisfied is taken back at
once, as Slurm does with ``kill_invalid_depend``; otherwise it would wait for ever.

The ends of jobs that others depend on are noticed without a pass over all jobs: each of them is a
unit of its own, counted for the unit of its user when it is over.

Jobs that were run again in the record are so again: a run of the recorded length ends, and the job
comes back to the queue as long after that as recorded, at least a second, in which the scheduler
takes note of the end. Its user waits for the end of the last run.

Jobs that only wait for a window (``Rules.window``) cost no event of their own: windows open at few
moments, each of which lets in all its jobs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, override

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.environment.holds.rules import Again, Cause, Condition, Rules, account_of
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, State
from hpcrowd.environment.parts.part import Part
from hpcrowd.environment.quantities import time_at_speed

#: Why jobs were let go that waited for each other.
AROUND = "waited for a job that waited for it: let go"

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.simulation import Simulation  # circle: for its type only


def hold(model: Simulation, rules: Rules | None = None) -> None:
    """Hold jobs back after their submission as rules say; before users join.

    Jobs also wait for the window of another part, such as for clean or cheap energy. Nothing is
    held under the recorded schedule, whose waits contain all of that.
    """
    for part in model.parts.at("window"):
        window = part.window()
        if window is not None:
            rules = replace(rules or Rules.none(len(model.jobs)), window=window)
    if rules is not None:
        model.attach(Holds(rules))


class Holds(Part):
    """The held jobs of a run: those that are submitted after this is attached.

    Parameters
    ----------
    rules
        What holds them.

    Attributes
    ----------
    impossible
        Jobs that were taken back because a job that they depend on did not end as they asked.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.impossible = 0
        self._concerned = rules.concerned
        self._children: dict[int, list[int]] = defaultdict(list)
        for row, parents in rules.parents.items():
            for parent in parents:
                self._children[parent.row].append(row)
        self._coming: dict[int, Cluster] = {}  # to be submitted at a known second
        self._held: dict[int, Cluster] = {}  # submitted, or to be, and not eligible
        self._opens: dict[int, int] = {}  # when the windows of these open, by row
        self._opening: dict[int, list[int]] = {}  # jobs by the second at which their window opens
        self._cause: dict[int, Cause] = {}  # the last cause for which jobs were held
        self._entered: set[int] = set()  # that were eligible before
        self._absent: set[int] = set()  # never to be submitted
        self._tasks: dict[int, set[int]] = defaultdict(set)  # eligible and not over, by array
        self._named: dict[int, list[int]] = defaultdict(list)  # not over, by name
        self._awaited = frozenset(rules.awaited)
        self._row: dict[int, int] = {}  # of the units of single jobs
        self._unit: dict[int, int] = {}  # units of the users of these jobs

    @override
    def attach(self, model: Simulation) -> None:
        self._model = model
        self._runs = {row: Again(model, row, runs) for row, runs in self.rules.runs.items()}
        for cluster in model.clusters.values():
            if cluster.engine.scheduler is not None:  # recorded waits contain all of that
                cluster.submit = partial(self._submit, cluster, cluster.submit)
                cluster.submit_again = partial(self._submit_again, cluster, cluster.submit_again)
                cluster.submit_unit = partial(self._submit_unit, cluster, cluster.submit_unit)
        self.follow(self._awaited)

    @override
    def keeps_jobs(self) -> bool:
        return bool(self._held)

    @override
    def on_unit(self, owner: object, rows: Int64s) -> None:
        if owner is not self:
            self.follow(rows.tolist())

    def follow(self, rows: Iterable[int]) -> None:
        """Notice from now on when these jobs are over, if others wait for them.

        To be called again when they become parts of other units.
        """
        units = self._model.jobs.unit
        for row in sorted(self._awaited.intersection(rows)):
            self._unit[row] = int(units[row])
            self._row[self._model.add_unit(self, np.array([row]))] = row

    @override
    def unit_of(self, row: int, unit: int) -> int:
        return self._unit.get(row, unit)

    def restore(self) -> None:
        """Put the units of users back into the table, when the run is over."""
        unit = self._model.jobs.column(Column.UNIT)
        for row, mine in self._unit.items():
            unit[row] = mine
        for one in self._runs.values():
            one.restore()

    @override
    def end(self) -> dict[str, Any]:
        self.restore()
        return {"holds": self.account(), "depends": self.preceding()}

    @override
    def held(self, cluster: Cluster) -> dict[int, str]:
        submit, now = self._model.jobs.submit, self._model.time
        held = (row for row, at in self._held.items() if at is cluster)
        return {row: self._cause[row] for row in sorted(held) if 0 <= submit[row] <= now}

    def account(self) -> dict[str, Any]:
        """Return how many jobs were held before their first run, for how long, and why, for JSON.

        Empty if no rule could hold any.
        """
        if not self.rules.holding:
            return {}
        jobs = self._model.jobs
        rows = np.array([row for row in sorted(self._cause) if row not in self._runs], np.int64)
        rows = rows[jobs.enqueued[rows] != UNKNOWN]
        causes = Counter(self._cause.values())
        return account_of(
            jobs.enqueued[rows] - jobs.submit[rows],
            {str(one): causes[one] for one in Cause if causes[one] and one != Cause.AGAIN},
            never=self.impossible,
            notes=self.rules.notes,
        )

    def preceding(self) -> dict[int, int]:
        """Return for each job that depends on others the last of them to end, by row."""
        jobs, found = self._model.jobs, {}
        for row, parents in sorted(self.rules.parents.items()):
            ended = [one.row for one in parents if jobs.start[one.row] != UNKNOWN]
            if jobs.submit[row] != UNKNOWN and ended:
                found[row] = max(ended, key=lambda other: int(jobs.end[other]))
        return found

    # Submissions.

    def _is_concerned(self, rows: Int64s) -> NDArray[np.bool_]:
        """Return which jobs are held if anything holds them; not those that were left out."""
        known = rows < len(self._concerned)
        known[known] = self._concerned[rows[known]]
        known &= self._model.jobs.state[rows] == State.UNFINISHED
        return known

    def _submit(self, cluster: Cluster, submit: Any, rows: ArrayLike, at: ArrayLike) -> None:
        """Submit jobs, some of which are held; as ``Engine.submit``."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        seconds = np.broadcast_to(np.asarray(at, np.int64), rows.shape)
        mine = self._is_concerned(rows)
        late = self._put_by(cluster, rows, seconds, ~mine)
        self._send(cluster, submit, rows, seconds, mine, late)

    def _send(
        self,
        cluster: Cluster,
        submit: Any,
        rows: Int64s,
        seconds: Int64s,
        mine: NDArray[np.bool_],
        late: NDArray[np.bool_],
    ) -> None:
        """Submit jobs, of which ``mine`` are held, and ``late`` until their window opens."""
        submit(rows[~mine & ~late], seconds[~mine & ~late])
        if late.any():
            cluster.engine.hold(rows[late], seconds[late])
        if mine.any():
            cluster.engine.hold(rows[mine], seconds[mine])
            self._expect(cluster, rows[mine], seconds[mine])

    def _submit_again(self, cluster: Cluster, submit: Any, rows: ArrayLike, at: ArrayLike) -> None:
        """Submit jobs again; those that were eligible before are not held again."""
        rows = np.atleast_1d(np.asarray(rows, np.int64))
        seconds = np.broadcast_to(np.asarray(at, np.int64), rows.shape)
        new = np.array([row not in self._entered for row in rows.tolist()], bool)
        mine = self._is_concerned(rows) & new
        late = self._put_by(cluster, rows, seconds, ~mine & new, again=True)
        others = ~mine & ~late
        if others.any():
            submit(rows[others], seconds[others])
        if not others.all():
            self._model.jobs.column(Column.SUBMIT)[rows[~others]] = seconds[~others]
            self._expect(cluster, rows[mine], seconds[mine])

    def _submit_unit(self, cluster: Cluster, submit: Any, unit: int, at: int) -> None:
        """Submit a unit, with its jobs spaced as recorded."""
        units = self._model.units
        rows = units.rows[units.first[unit] : units.first[unit + 1]]
        mine = self._is_concerned(rows)
        if self.rules.window is None and not mine.any():
            submit(unit, at)
            return
        rows, seconds = units.as_recorded(unit, at)
        late = self._put_by(cluster, rows, seconds, ~mine)
        if mine.any() or late.any():
            self._send(cluster, cluster.engine.submit, rows, seconds, mine, late)
        else:
            submit(unit, at)

    def _put_by(
        self,
        cluster: Cluster,
        rows: Int64s,
        at: Int64s,
        which: NDArray[np.bool_],
        *,
        again: bool = False,
    ) -> NDArray[np.bool_]:
        """Return which submitted jobs wait for a window and for nothing else; note when it opens.

        Nothing else holds those of ``which``, shape (jobs,). If they are submitted ``again``, their
        requested times are those at the cluster already.
        """
        late = np.zeros(len(rows), np.bool_)
        window, jobs = self.rules.window, self._model.jobs
        if window is None:
            return late
        free = np.flatnonzero(which & (jobs.state[rows] == State.UNFINISHED))
        rows, at = rows[free], at[free]
        requested, speed = jobs.requested_time[rows], cluster.engine.speed
        if speed != 1 and not again:
            requested = time_at_speed(requested, speed)
        opens = window.starts(jobs.user[rows].tolist(), requested.tolist(), at.tolist())
        late[free] = np.array(opens, np.int64) > at
        for row, second, open_at in zip(rows.tolist(), at.tolist(), opens, strict=True):
            if open_at > second:
                self._held[row] = cluster
                self._wait_until(row, open_at)
            else:  # forget a submission that was withdrawn
                self._entered.add(row)
                self._opens.pop(row, None)
                self._held.pop(row, None)
        return late

    def _wait_until(self, row: int, opens: int) -> None:
        """Hold a job until its window opens."""
        window = self.rules.window
        assert window is not None  # it has chosen the second
        self._cause[row] = window.cause
        self._opens[row] = opens
        if opens not in self._opening:
            self._opening[opens] = []
            self._model.call_at(opens, self._open, opens)
        self._opening[opens].append(row)

    def _open(self, now: int) -> None:
        """Let jobs into the queue whose window opens."""
        for row in sorted(self._opening.pop(now)):
            if self._opens.get(row) != now:
                continue  # it was taken back, or put off
            if self._model.jobs.submit[row] == UNKNOWN:  # its submission was withdrawn
                del self._held[row], self._opens[row], self._cause[row]
            else:
                self._try(row)

    def _expect(self, cluster: Cluster, rows: Int64s, at: Int64s) -> None:
        for row, second in zip(rows.tolist(), at.tolist(), strict=True):
            self._coming[row] = cluster
            self._model.call_at(second, self._arrive, row, second)

    def _arrive(self, row: int, at: int) -> None:
        """Let a job into the queue that is submitted now, or hold it."""
        jobs, rules = self._model.jobs, self.rules
        if jobs.submit[row] != at or row not in self._coming:
            return  # it was taken back, or put off
        cluster = self._coming.pop(row)
        if jobs.state[row] != State.UNFINISHED:  # its user left meanwhile
            cluster.engine.let_in(row)
            return
        name = rules.name_of.get(row)
        if name is not None and row not in self._named[name]:
            self._named[name].append(row)
        self._held[row] = cluster
        self._opens.pop(row, None)
        if rules.delay[row] > 0:
            self._model.call_at(at + int(rules.delay[row]), self._try, row)
        self._try(row)

    # Eligibility.

    def _try(self, row: int) -> None:
        """Let a held job into the queue if nothing holds it any longer."""
        cluster = self._held.get(row)
        if cluster is None:
            return
        cause = self._holding(row)
        if cause is not None:
            self._cause[row] = cause
            return
        if self._never(row):
            self.impossible += 1
            self._cause[row] = Cause.DEPENDENCY
            self.take_back(np.array([row]))
            self._model.on_taken_back(np.array([row]))
            return
        if self._waits_for_window(row):
            return
        self._let_in(row)

    def _waits_for_window(self, row: int) -> bool:
        """Return whether the window of a job, chosen once nothing else holds it, is yet to open."""
        window, now = self.rules.window, self._model.time
        if window is None:
            return False
        if row not in self._opens:
            jobs = self._model.jobs
            user, requested = int(jobs.user[row]), int(jobs.requested_time[row])
            (opens,) = window.starts([user], [requested], [now])
            if opens > now:
                self._wait_until(row, opens)
        return self._opens.get(row, now) > now

    def _let_in(self, row: int) -> None:
        cluster = self._held.pop(row)
        self._opens.pop(row, None)
        self._entered.add(row)
        if row in self.rules.array:
            self._tasks[self.rules.array[row]].add(row)
        cluster.engine.let_in(row)

    def _holding(self, row: int) -> Cause | None:
        """Return what holds a submitted job; None if nothing does, or nothing can let it go."""
        rules, jobs = self.rules, self._model.jobs
        if row >= len(self._concerned) or not self._concerned[row]:
            return None
        if row in rules.parents and not self._met(row) and not self._never(row):
            return Cause.DEPENDENCY
        if row in rules.singletons:
            earlier = self._named[rules.name_of[row]]
            if any(not self._over(other) for other in earlier[: earlier.index(row)]):
                return Cause.SINGLETON
        if rules.delay[row] > 0 and self._model.time < jobs.submit[row] + rules.delay[row]:
            return Cause.BEGIN
        array = rules.array.get(row)
        if array is not None and len(self._tasks[array]) >= rules.throttle[array]:
            return Cause.THROTTLE
        return None

    def _over(self, row: int) -> bool:
        """Return whether a job is over, or will never be submitted."""
        jobs = self._model.jobs
        return bool(jobs.state[row] != State.UNFINISHED) or row in self._absent

    def _satisfied(self, row: int, condition: Condition) -> bool:
        """Return whether a job that is over ended as asked; one that is not there always did."""
        state = State(self._model.jobs.state[row])
        if condition == Condition.ANY or row in self._absent or state == State.RENOUNCED:
            return True
        fine = state == State.COMPLETED and not self.rules.failed[row]
        return fine == (condition == Condition.OK)

    def _met(self, row: int) -> bool:
        """Return whether the dependency of a job is satisfied."""
        found = [self._over(one.row) and self._satisfied(*one) for one in self.rules.parents[row]]
        return any(found) if row in self.rules.either else all(found)

    def _never(self, row: int) -> bool:
        """Return whether no event can satisfy the dependency of a job any longer."""
        parents = self.rules.parents.get(row, ())
        failed = [self._over(one.row) and not self._satisfied(*one) for one in parents]
        return bool(failed) and (all(failed) if row in self.rules.either else any(failed))

    # Ends.

    def on_finished(self, unit: int, now: int) -> None:
        """Let jobs go that waited for this one, and count it for its user; or run it again."""
        row = self._row[unit]
        again = self._runs.get(row)
        if again is not None and again.stop(now):
            self._model.units.remaining[unit] = 1
            self._model.call_at(now + 1, self._stopped, row)
            return
        self._ended(row)
        mine = self._unit[row]
        if mine != UNKNOWN:
            self._model.count_over(mine)

    def _stopped(self, row: int) -> None:
        """Hold a job whose run has ended until it is submitted again."""
        again = self._runs[row]
        self._held[row], self._cause[row] = again.cluster, Cause.AGAIN
        self._model.call_at(again.begin(), self._again, row)

    def _again(self, row: int) -> None:
        """Submit a job again, unless its user has taken it back."""
        if self._held.pop(row, None) is not None:
            self._runs[row].cluster.engine.let_in_again(row)

    def _ended(self, row: int) -> None:
        rules = self.rules
        for child in self._children.get(row, ()):
            self._try(child)
        name = rules.name_of.get(row)
        if name is not None and row in self._named[name]:
            self._named[name].remove(row)
            for other in list(self._named[name]):
                self._try(other)
        array = rules.array.get(row)
        if array is not None:
            self._tasks[array].discard(row)
            for other in sorted(one for one in self._held if rules.array.get(one) == array):
                self._try(other)

    @override
    def take_back(self, rows: Int64s) -> Int64s:
        jobs, now = self._model.jobs, self._model.time
        others = []
        for row in rows.tolist():
            held, coming = self._held.pop(row, None), self._coming.pop(row, None)
            self._opens.pop(row, None)
            if held is not None and jobs.submit[row] <= now:
                jobs.column(Column.STATE)[row] = State.CANCELLED
                jobs.end[row] = now
            elif held is not None or coming is not None:
                if held is not None:  # it was never submitted, so it was not held either
                    del self._cause[row]
                jobs.column(Column.STATE)[row] = State.RENOUNCED
                jobs.submit[row] = jobs.cluster[row] = UNKNOWN
            else:
                others.append(row)
        return np.array(others, np.int64)

    @override
    def on_left_out(self, rows: Int64s) -> None:
        for row in rows.tolist():
            if row in self._unit:
                self._model.call_at(self._model.time, self._ended, row)

    @override
    def awaited(self) -> dict[int, list[int]]:
        parents = self.rules.parents
        return {row: [one.row for one in before] for row, before in parents.items()}

    @override
    def let_go(self, before: int, row: int) -> None:
        """Let a job no longer wait for another one; if it is not eligible, from now on."""
        parents = dict(self.rules.parents)
        left = tuple(one for one in parents.pop(row) if one.row != before)
        if left:
            parents[row] = left
        self.rules = replace(self.rules, parents=parents)
        self._model.call_at(self._model.time, self._try, row)

    @override
    def go_on(self) -> bool:
        if not self._held:
            return False
        # They wait for jobs which nobody will submit.
        jobs, before = self._model.jobs, len(self._held)
        self._absent |= {
            one.row
            for row in self._held
            for one in self.rules.parents.get(row, ())
            if jobs.submit[one.row] == UNKNOWN and not self._over(one.row)
        }
        for row in sorted(self._held):
            self._try(row)
        if len(self._held) == before:  # they wait for each other
            self.rules.notes[AROUND] += 1
            self._let_in(min(self._held))
        return True
