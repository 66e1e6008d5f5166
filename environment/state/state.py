"""The state of a cluster at one second, with what is known of the time before.

Nothing in a :class:`ClusterState` is known only later: jobs that wait have no start, and jobs that
run have no end and no run time. Its checks are here, and how a simulation begins from it instead of
from an empty machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import Clock, moment
from hpcrowd.environment.errors import ParseError, QuantityError, TraceError, nearest, shortened
from hpcrowd.environment.jobs import UNKNOWN, Column, Int64s, JobTable
from hpcrowd.environment.jobs import State as Outcome
from hpcrowd.environment.limits.numbers import LARGEST_TIME
from hpcrowd.environment.machine.hostlists import expand
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.requests import Ask
from hpcrowd.environment.schedulers.past import Past, Phases, Placed

if TYPE_CHECKING:
    from hpcrowd.environment.simulation import Simulation

#: Why jobs wait that something else than the scheduler holds back.
HELD_BACK = "not eligible yet: {}"


@dataclass
class ClusterState:
    """A cluster at one second.

    Attributes
    ----------
    jobs
        All jobs that had been submitted until then, with their recorded times: of those that are
        over all three, of those that run submission and start, of those that wait the submission;
        the others, and the run times that follow from them, are -1.
    now
        The second, s since the origin of the clock.
    clock
        Local time.
    processors
        Size of the machine.
    down
        Processors that are down now.
    closed
        Announced times in which no job may run, from and to, s since the origin.
    source
        Where it comes from, for messages.
    lines
        Line of its file in which each job stands, shape (jobs,), for messages, 0 for none; None if
        it comes from no file.
    held
        Rows of waiting jobs that will not start by themselves, and the reason in the words of the
        resource manager: held by somebody, waiting for another job, asking for the impossible.
    placed
        On a machine of nodes, what is known of jobs beyond the table, by row: partition and nodes
        of those that run, earliest start and reason of those that wait.
    partitions
        Names of the partitions of the machine; empty if they are not known.
    notes
        What reading dropped, repaired or assumed, one line each.
    """

    jobs: JobTable
    now: int
    clock: Clock
    processors: int
    down: int = 0
    closed: tuple[tuple[int, int], ...] = ()
    source: str = "state"
    lines: Int64s | None = field(default=None, repr=False, compare=False)
    held: dict[int, str] = field(default_factory=dict)
    placed: dict[int, Placed] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<ClusterState at {moment(self.clock, self.now)}: {len(self.running):,} running, "
            f"{len(self.waiting):,} waiting, {len(self.over):,} over>"
        )

    @property
    def running(self) -> Int64s:
        """Rows of the jobs that run."""
        jobs = self.jobs
        runs = (jobs.recorded_start != UNKNOWN) & (jobs.recorded_end == UNKNOWN)
        return np.flatnonzero(runs)

    @property
    def used(self) -> int:
        """Processors of the jobs that run."""
        return int(self.jobs.processors[self.running].sum())

    @property
    def waiting(self) -> Int64s:
        """Rows of the jobs that wait, by submission."""
        jobs = self.jobs
        waits = np.flatnonzero((jobs.recorded_start == UNKNOWN) & (jobs.recorded_end == UNKNOWN))
        return waits[np.lexsort((waits, jobs.recorded_submit[waits]))]

    @property
    def over(self) -> Int64s:
        """Rows of the jobs that are over."""
        return np.flatnonzero(self.jobs.recorded_end != UNKNOWN)

    @property
    def record_begin(self) -> int:
        """Second at which the record of what is over begins, s since the origin.

        That is the first end in it: accounting of a day also has jobs that began before.
        """
        ends = self.jobs.recorded_end
        return int(ends[ends != UNKNOWN].min(initial=self.now))

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        now: int,
        clock: Clock,
        processors: int,
        *,
        simulated: bool = False,
        source: str = "state",
    ) -> ClusterState:
        """Return the state at a second of a record, or of a run.

        What happens in that very second has happened: a job that ends then is over, one that is
        submitted then waits unless it starts.

        Parameters
        ----------
        jobs
            The whole record; what comes later is left out.
        now
            The second, s since the origin.
        clock, processors, source
            See the class.
        simulated
            Take the simulated times instead of the recorded ones.

        Raises
        ------
        QuantityError
            If no job had been submitted until then.
        """
        submit, start, end = (
            (jobs.submit, jobs.start, jobs.end)
            if simulated
            else (jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end)
        )
        if simulated:  # a rejected job has no end, and is over at once
            end = np.where(jobs.state == Outcome.REJECTED, submit, end)
        rows = np.flatnonzero((submit != UNKNOWN) & (submit <= now))
        if not len(rows):
            raise QuantityError(
                f"{source} at {moment(clock, now)}: no job had been submitted; choose a later time"
            )
        known = jobs.take(rows)
        known.erase_outcome()
        start = np.where(start[rows] > now, UNKNOWN, start[rows])
        end = np.where(end[rows] > now, UNKNOWN, end[rows])
        known.recorded_submit[:] = submit[rows]
        known.recorded_start[:], known.recorded_end[:] = start, end
        known.run_time[end == UNKNOWN] = UNKNOWN
        return cls(known, now, clock, processors, source=source)

    @classmethod
    def of_simulation(cls, simulation: Simulation, *, source: str = "simulation") -> ClusterState:
        """Return the state of a simulation now, between two calls of ``run``.

        It has the jobs of the first cluster with their simulated times as recorded ones; those that
        users have submitted for later are left out. On a machine of nodes, what runs keeps its
        place. Jobs that are held before they are eligible count as held: what they wait for is not
        part of a state.

        Parameters
        ----------
        simulation
            It is not changed.
        source
            See the class.

        Raises
        ------
        QuantityError
            If no job has been submitted yet.
        """
        cluster, jobs, now = simulation.cluster, simulation.jobs, simulation.time
        engine = cluster.engine
        submit = jobs.submit
        rows = np.flatnonzero(
            (jobs.cluster == cluster.number) & (submit != UNKNOWN) & (submit <= now)
        )
        found = cls.of(
            jobs.take(rows), now, simulation.clock, engine.processors, simulated=True, source=source
        )
        held: dict[int, str] = {}
        for row, cause in cluster.held.items():
            held[int(np.searchsorted(rows, row))] = HELD_BACK.format(cause)
        placed: dict[int, Placed] = {}
        if engine.scheduler is not None and engine.scheduler.nodes:
            policy: Any = engine.scheduler
            runs = {run.row: run for run in policy.ledger}  # of several, the last
            for place in found.running.tolist():
                run = runs[int(rows[place])]
                placed[place] = Placed(run.partition, holding=run.holding)
        return replace(
            found,
            down=engine.processors - engine.uncapped,
            closed=tuple((int(start), int(end)) for start, end in engine.windows),
            held=held,
            placed=placed,
        )


# ---- checks -------------------------------------------------------------------------------------


def check_state(state: ClusterState) -> list[str]:
    """Check that a state does not contradict itself; return what is odd.

    Jobs that are over may have asked for more than there is now, and for partitions that are gone.
    Jobs in :attr:`ClusterState.held` may ask for more than the machine has: that may be why they
    wait. Odd and not wrong, one line each, are jobs that run longer than they asked for, as real
    resource managers stop them only now and then.

    A ParseError is raised if a job of a file contradicts something, and names the line; a
    TraceError for a state that comes from no file, or about no single job; a QuantityError if more
    is down than there is.
    """
    size = state.processors
    if not 0 <= state.down <= size:
        raise QuantityError(
            f"{state.source}: {state.down:,} processors down, and the machine has {size:,}; "
            "correct one of them"
        )
    for begin, end in state.closed:
        if begin >= end:
            raise QuantityError(
                f"{state.source}: closed from {moment(state.clock, begin)} to "
                f"{moment(state.clock, end)}: the end must be later than the beginning"
            )
    _check_times(state)
    _check_numbers(state)
    _check_held(state)
    _check_sizes(state, size)
    _check_sums(state)
    _check_partitions(state)
    return _remarks(state)


def refuse(state: ClusterState, row: int, field: str, value: Any, rule: str) -> NoReturn:
    """Refuse a job of a state: what is wrong is the value of a field, by a rule, with the cure.

    That is a ParseError if the job has a line in a file, and else a TraceError.
    """
    job = f"job {state.jobs.who(int(state.jobs.number[row]), 'job')}"
    line = 0 if state.lines is None else int(state.lines[row])
    if line > 0:
        raise ParseError(state.source, line, field, str(value), f"{job}: {rule}")
    raise TraceError(f"{state.source}: {job}, {field} {shortened(str(value))}: {rule}")


def refuse_first(state: ClusterState, rows: Int64s, field: str, values: Int64s, rule: str) -> None:
    """Refuse the first of some jobs, if there is one; values are those of all jobs."""
    if len(rows):
        row = int(rows.min())
        refuse(state, row, field, int(values[row]), rule)


def _check_times(state: ClusterState) -> None:
    """Check that every job was submitted, started and ended in this order, and not after now."""
    jobs, clock = state.jobs, state.clock
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    started, ended = start != UNKNOWN, end != UNKNOWN
    now = moment(clock, state.now)

    def check(wrong: NDArray[np.bool_], name: str, times: Int64s, rule: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            refuse(state, row, name, moment(clock, int(times[row])), rule)

    never = np.flatnonzero(submit < 0)
    refuse_first(state, never, "submit", submit, "every job of a state has been submitted")
    late = f"later than the moment of the state, {now}; leave the job out, or correct one of them"
    check(submit > state.now, "submit", submit, late)
    check(started & (start > state.now), "start", start, late.replace("the job", "the start"))
    check(ended & (end > state.now), "end", end, late.replace("the job", "the end"))
    early = "earlier than its {}; correct one of them"
    check(started & (start < submit), "start", start, early.format("submission"))
    check(ended & started & (end < start), "end", end, early.format("start"))
    check(ended & (end < submit), "end", end, early.format("submission"))


def _check_numbers(state: ClusterState) -> None:
    """Check that no two jobs have the same number."""
    number = state.jobs.number
    order = np.argsort(number, kind="stable")
    again = np.flatnonzero(number[order][1:] == number[order][:-1])
    if len(again):
        row = int(order[again + 1].min())
        before = int(np.flatnonzero(number == number[row])[0])
        where = (
            f" (line {state.lines[before]})"
            if state.lines is not None and state.lines[before] > 0
            else ""
        )
        rule = f"another job has this number{where}; number them differently"
        refuse(state, row, "number", int(number[row]), rule)


def _check_sizes(state: ClusterState, size: int) -> None:
    """Check that the jobs that run fit into the machine together, and those that wait alone."""
    jobs, running, waiting = state.jobs, state.running, state.waiting
    here = np.concatenate((running, waiting))
    without = here[jobs.processors[here] < 1]
    refuse_first(state, without, "processors", jobs.processors, "a job needs at least one")
    by_start = running[np.lexsort((running, jobs.recorded_start[running]))]
    used = np.cumsum(jobs.processors[by_start])
    up = size - state.down
    if len(used) and used[-1] > up:
        row = int(by_start[np.searchsorted(used, up, side="right")])
        down = f", less {state.down:,} that are down" if state.down else ""
        rule = (
            f"{plural(len(running), 'running job')} on {int(used[-1]):,} processors, and the "
            f"machine has {size:,}{down}; correct its size, or leave out jobs that are over"
        )
        refuse(state, row, "processors", int(jobs.processors[row]), rule)
    large = jobs.processors[waiting] > size
    large &= ~np.isin(waiting, np.fromiter(state.held, np.int64, len(state.held)))
    rule = f"waits, and the machine has {size:,}; correct its size, or leave the job out"
    refuse_first(state, waiting[large], "processors", jobs.processors, rule)


def _check_held(state: ClusterState) -> None:
    """Check that jobs that are held wait."""
    rows = np.fromiter(state.held, np.int64, len(state.held))
    wrong = np.setdiff1d(rows, state.waiting)
    if len(wrong):
        row = int(wrong[0])
        rule = "only a job that waits is held; leave out the reason, or start and end"
        refuse(state, row, "held", state.held[row], rule)


def _check_sums(state: ClusterState) -> None:
    """Check that no sum of processor-seconds overflows."""
    jobs = state.jobs
    longest = np.maximum(jobs.run_time, jobs.requested_time).astype(np.float64)
    work = longest * np.maximum(jobs.processors, 1)
    if float(work.sum()) + state.now > LARGEST_TIME:
        row = int(np.argmax(work))
        field = "requested_time" if jobs.requested_time[row] == longest[row] else "run_time"
        rule = (
            f"the jobs have {work.sum():.2g} processor-seconds in all, too many to add; this one "
            "has the most; correct it"
        )
        refuse(state, row, field, int(longest[row]), rule)


def _check_partitions(state: ClusterState) -> None:
    """Check that the jobs that run or wait are in partitions that exist."""
    known = set(state.partitions)
    if not known:
        return
    here = np.sort(np.concatenate((state.running, state.waiting)))
    fine: dict[str, str] = {}  # the first unknown partition in each text
    for row, text in zip(here.tolist(), partitions_of(state, here), strict=True):
        if text not in fine:
            names = [name for name in text.split(",") if name]
            fine[text] = next((name for name in names if name not in known), "")
        if fine[text]:
            cure = nearest(fine[text], sorted(known)) or f"there are {', '.join(sorted(known))}"
            refuse(state, row, "queue", fine[text], f"no such partition; {cure.rstrip()}")


def partitions_of(state: ClusterState, rows: Int64s) -> list[str]:
    """Return the partitions of jobs, separated by commas; empty if they are not known.

    That in which a job runs, else those that it asks for, else the name of its queue.
    """
    jobs = state.jobs
    placed = [state.placed[row].partition if row in state.placed else "" for row in rows.tolist()]
    names = jobs.names.get("queue", {})
    queues = [names.get(number, "") for number in jobs.queue[rows].tolist()]
    asked = [""] * len(rows)
    if jobs.requests is not None:
        asked = jobs.requests.take(rows).texts(Ask.PARTITIONS)
    return [here or text or queue for here, text, queue in zip(placed, asked, queues, strict=True)]


def _remarks(state: ClusterState) -> list[str]:
    """Return what is odd and not wrong."""
    jobs, running = state.jobs, state.running
    limit = jobs.requested_time[running]
    ran = state.now - jobs.recorded_start[running]
    over = (limit != UNKNOWN) & (ran > limit)
    if not over.any():
        return []
    most = int((ran - limit)[over].max())
    return [f"{plural(int(over.sum()), 'job')} running longer than requested, by up to {most:,} s"]


#: Most names of all lists of a file: ten jobs on each of a million nodes. A short list can have
#: thousands of names (our choice).
MOST_PLACES = 10_000_000


class NodeLists:
    """The host lists of one file, such as ``n[1-4,7]``; equal ones are the same tuple."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._names = 0

    def names(self, text: str) -> tuple[str, ...]:
        """Return the names in a list.

        A QuantityError is raised if it is not a host list, or all lists together have too many
        names.
        """
        found = self._known.get(text)
        if found is None:
            found = tuple(expand(text))
            self._names += len(found)
            if self._names > MOST_PLACES:
                raise QuantityError(
                    f"host list {text!r}: with the lists before, more than {MOST_PLACES:,} names; "
                    "leave out jobs"
                )
            self._known[text] = found
        return found


# ---- the beginning of a simulation ---------------------------------------------------------------

NO_ROWS: Int64s = np.zeros(0, np.int64)


def begin_from(
    simulation: Simulation,
    now: int,
    running: Int64s,
    waiting: Int64s,
    over: Int64s = NO_ROWS,
    *,
    placed: Mapping[int, Placed] | None = None,
    phases: Phases | None = None,
) -> None:
    """Let a simulation go on from a second at which some jobs run and some wait.

    Its first cluster gets them, before users join and before anything has run. The scheduler then
    knows what it would know if it had run since the first of these jobs, and has a pass at that
    second. What cannot be known from the jobs begins anew: reservations of schedulers with a plan
    (all waiting jobs are planned again, by submission), and on a machine under ``slurm`` the rhythm
    of its passes, unless ``phases`` says it: all of them are due at once.

    Columns of the table that it reads, beside those that a scheduler reads of any job (processors,
    requested time, user, group, queue; ``requests`` on a machine of nodes):

    ==============  ==========================================================================
    of jobs         columns
    ==============  ==========================================================================
    that run        ``recorded_submit``, ``recorded_start``; ``run_time``, how long they run in
                    all. One that should be over by ``now`` ends in the next second.
    that wait       ``recorded_submit``; ``run_time``
    that are over   ``recorded_submit``, ``recorded_start``, ``recorded_end``. Those without a
                    start left the queue, and count as cancelled.
    ==============  ==========================================================================

    It fills the simulated columns of all of them: submission, start, end, estimate, cluster and
    state. Those that are over are ``completed``, or ``killed`` where jobs are and their run time is
    beyond their request. A waiting job that the machine never has room for, or that the site
    refuses, becomes ``rejected``, as on arrival.

    The simulation has not begun; what happens in the second ``now``, s since the origin, has
    happened. Running jobs that started in the same second are taken to have started in the order of
    their rows. What is ``over`` are rows of the past that is known. Policies with a memory need it:
    decayed usage (fair-share, multifactor, slurm), mean slowdowns (selective), correlations
    (adaptive); so do predictors, which hear of all arrivals and ends in order. Without it they know
    only what runs and waits.

    On a machine of nodes, ``placed`` is what is known of jobs beyond the table, by row. Running
    jobs are seated first where their nodes are known, then the others by start, where the rule of
    placement puts them. Holdings of the ledger of one simulation may be passed on to the next,
    which is quicker than names of nodes. The ``phases`` are of Slurm's controller, such as
    ``scheduler.state.phases`` of another run. Passes are at most their interval too early without
    them.

    A QuantityError is raised if the schedule is the recorded one, a job begins or ends when it
    cannot, or the running jobs need more than the machine has, a partition or node that it has not,
    or one that is too small.
    """
    jobs, engine = simulation.jobs, simulation.cluster.engine
    if engine.scheduler is None:
        raise QuantityError(
            "state under the recorded schedule: nobody knows what comes; choose a scheduler"
        )
    running, waiting, over = (np.asarray(rows, np.int64) for rows in (running, waiting, over))
    _check(jobs, now, running, waiting, over)
    running = running[np.argsort(jobs.recorded_start[running], kind="stable")]
    waiting = waiting[np.lexsort((waiting, jobs.recorded_submit[waiting]))]
    started = jobs.recorded_start[over] != UNKNOWN
    left, over = over[~started], over[started]
    for rows in (running, waiting, over, left):
        for column, recorded in (
            (Column.SUBMIT, Column.RECORDED_SUBMIT),
            (Column.ENQUEUED, Column.RECORDED_SUBMIT),
            (Column.START, Column.RECORDED_START),
            (Column.END, Column.RECORDED_END),
        ):
            jobs.matrix[column, rows] = jobs.matrix[recorded, rows]
    over = over[np.lexsort((over, jobs.end[over]))]
    for cluster in simulation.clusters.values():
        cluster.engine.pass_to(now)
    simulation.time = now
    engine.go_on(Past(now, running, waiting, over, placed or {}, phases), left)


def _check(jobs: JobTable, now: int, running: Int64s, waiting: Int64s, over: Int64s) -> None:
    """Check that the recorded times go with what jobs do now."""
    here = np.concatenate((running, waiting, over))
    if len(here) and not 0 <= here.min() <= here.max() < len(jobs):
        raise QuantityError(
            f"rows {here.min()} to {here.max()} of the state: the table has "
            f"{plural(len(jobs), 'job')}; append jobs before the simulation begins"
        )
    submit, start, end = jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end
    ran = over[start[over] != UNKNOWN]
    for rows, wrong, what in (
        (here, (submit[here] < 0) | (submit[here] > now), "must have been submitted by then"),
        (
            running,
            (start[running] < submit[running]) | (start[running] > now),
            "runs, and must have started after its submission and by then",
        ),
        (
            ran,
            (start[ran] < submit[ran]) | (end[ran] < start[ran]),
            "is over, and must have started after its submission and ended after its start",
        ),
        (over, end[over] > now, "is over, and must have ended by then"),
    ):
        if wrong.any():
            row = int(rows[np.flatnonzero(wrong)[0]])
            raise QuantityError(
                f"job {jobs.number[row]} (row {row}) in the state at {now} s: submitted at "
                f"{submit[row]} s, started at {start[row]} s, ended at {end[row]} s; it {what}"
            )
    if len(np.unique(here)) < len(here):
        row = int(here[np.flatnonzero(np.bincount(here)[here] > 1)[0]])
        raise QuantityError(
            f"job {jobs.number[row]} (row {row}) is twice in the state; a job either runs, waits "
            "or is over"
        )
