"""The base class of schedulers, the view of jobs that they get, and the reasons why a job waits.

While jobs wait, a scheduler is called once at every instant at which jobs ended or arrived, or that
it asked for; it names the jobs to start now. The policies in this package are the readable
reference, and base classes for your own. The compiled engine runs the same policies; tests compare
the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from hpcrowd.environment.clock import moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import NO_NAMES, UNKNOWN, Int64s, JobTable, Names
from hpcrowd.environment.options import REQUIRED, keywords_of
from hpcrowd.environment.quantities import format_duration, plural
from hpcrowd.environment.registry import Seam
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.environment.clock import Clock
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only
    from hpcrowd.environment.schedulers.outlook import Outlook
    from hpcrowd.environment.schedulers.past import Past


class ReasonCode(IntEnum):
    """Why a job waits."""

    HEAD = 0  #: the first that does not fit: processors are kept for it
    NO_ROOM = 1  #: requests more processors than are free
    WOULD_DELAY = 2  #: fits, and would delay a job that has a reservation
    BEHIND = 3  #: no job may overtake the head
    PLANNED = 4  #: has a place in the plan
    PROMISED = 5  #: a start was promised to it; the current plan is not known
    LIMIT = 6  #: user or queue is at a limit
    TOO_LARGE = 7  #: requests more processors than are up
    MAINTENANCE = 8  #: fits, and would run into announced maintenance
    CLOSED = 9  #: the cluster is closed for maintenance
    CAN_START = 10  #: fits: something has changed since the last scheduling pass
    ARRIVED = 11  #: there was no scheduling pass since it arrived
    NOT_CHOSEN = 12  #: fits, but the scheduler did not choose it, for an unknown reason
    RECORDED = 13  #: starts as recorded in the trace
    GRID = 14  #: no cluster of the grid has room
    BROKER = 15  #: is with the broker of the grid
    HELD = 16  #: is not eligible yet
    SITE = 17  #: in the words of the site's manager, such as Slurm's ``QOSMaxJobsPerUserLimit``


class WaitingReason(NamedTuple):
    """Why one job waits; :data:`UNKNOWN` if a number has no meaning or is not known.

    Free processors are those left when the scheduler reaches the job: jobs that start before it in
    the same pass already hold theirs.
    """

    row: int  #: row in the table of jobs
    code: ReasonCode
    now: int  #: s since the origin; time of the reason
    asks: int  #: requested processors
    free: int  #: processors; negative while more are held than are up
    place: int = UNKNOWN  #: in the queue, in the order of the scheduler, from 1
    order: str = ""  #: that order in words, such as ``by fair share``; empty for by submission
    lasts: int = UNKNOWN  #: s, run time that the scheduler expects
    blocker: int = UNKNOWN  #: row of the job that it waits behind, or would delay
    number: int = UNKNOWN  #: job number of that job
    reserved: int = UNKNOWN  #: s since the origin, start of that job, or of maintenance
    start: int = UNKNOWN  #: s since the origin, the earliest start that the scheduler expects
    up: int = UNKNOWN  #: processors that are up
    note: str = ""  #: further information

    def words(self, clock: Clock) -> str:
        """Return the reason in one line, times as local times."""
        text = self._words(clock)
        told = self.order and self.code in TOLD_BY_PLACE
        return f"place {self.place:,} {self.order}: {text}" if told else text

    def _words(self, clock: Clock) -> str:
        match self.code:
            case ReasonCode.HEAD:
                lead = "first" if self.place == 1 else "next"
                return f"{lead} {self.order or 'in the queue'}: {self._room}{self._expected(clock)}"
            case ReasonCode.NO_ROOM:
                return self._room + self._more
            case ReasonCode.WOULD_DELAY:
                return (
                    f"fits, but would delay {self._blocker} (reserved "
                    f"{self._at(clock, self.reserved)}): {self._believed}{self._more}"
                )
            case ReasonCode.BEHIND:
                return f"waits behind {self._blocker}: {self.note} allows no overtaking"
            case ReasonCode.PLANNED:
                return f"planned for {self._at(clock, self.start)}"
            case ReasonCode.PROMISED:
                past = ", which has passed" if self.start < self.now else ""
                return f"promised to start by {self._at(clock, self.start)}{past}"
            case ReasonCode.LIMIT:
                kept = f", with {self._blocker}, which goes first" if self.blocker >= 0 else ""
                return f"{self.note}{kept}"
            case ReasonCode.TOO_LARGE:
                return (
                    f"too large for the processors that are up: requests {self.asks:,}, "
                    f"{max(self.up, 0):,} up"
                )
            case ReasonCode.MAINTENANCE:
                when = self._at(clock, self.reserved)
                return f"would run into the maintenance announced for {when}: {self._believed}"
            case ReasonCode.CLOSED:
                if self.start == self.now:
                    return "cluster is closed and opens now"
                return f"cluster is closed until {self._at(clock, self.start)}"
            case ReasonCode.CAN_START:
                return "fits: may start at the next scheduling pass"
            case ReasonCode.ARRIVED:
                return "arrived in this second, not considered yet"
            case ReasonCode.NOT_CHOSEN:
                return f"{self.note} did not choose it: {self._room}"
            case ReasonCode.RECORDED:
                return f"recorded to start {self._at(clock, self.start)}"
            case ReasonCode.GRID:
                return f"no cluster of the grid has {self.asks:,} free{self._more}"
            case ReasonCode.HELD:
                return f"not eligible yet{self._more}"
            case ReasonCode.SITE:
                return f"{self.note}{self._expected(clock)}"
        return f"held by the broker of the grid: requests {plural(self.asks, 'processor')}"

    @property
    def _room(self) -> str:
        free = "none is" if self.free <= 0 else "1 is" if self.free == 1 else f"{self.free:,} are"
        return f"requests {plural(self.asks, 'processor')}, {free} free"

    @property
    def _more(self) -> str:
        return f"; {self.note}" if self.note else ""

    @property
    def _believed(self) -> str:
        return f"expected to run {format_duration(self.lasts)}"

    @property
    def _blocker(self) -> str:
        known = self.number != UNKNOWN
        return f"job {self.number}" if known else f"the job in row {self.blocker}"

    def _at(self, clock: Clock, second: int) -> str:
        return "now" if second == self.now else moment(clock, second, near=self.now)

    def _expected(self, clock: Clock) -> str:
        if self.start == UNKNOWN:
            return ""
        if self.start <= self.now:
            return "; start expected at any moment, as jobs run longer than expected"
        return f"; start expected {self._at(clock, self.start)}"


#: Reasons shown with the place in the queue, if the queue is not ordered by submission.
TOLD_BY_PLACE = frozenset(
    {ReasonCode.NO_ROOM, ReasonCode.WOULD_DELAY, ReasonCode.BEHIND, ReasonCode.LIMIT}
)


class WaitingJob(NamedTuple):
    """A job in the queue."""

    row: int  #: row in the table of jobs
    processors: int
    estimate: int  #: s, the run time that the scheduler expects
    submit: int  #: s since the origin
    requested_time: int = UNKNOWN  #: s, as requested by the user
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class RunningJob(NamedTuple):
    """A running job."""

    row: int
    processors: int
    expected_end: (
        int  #: s since the origin; never before now, also when the job outruns its estimate
    )
    start: int = UNKNOWN  #: s since the origin
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class Plan(Protocol):
    """Starts of waiting jobs, and what they hold from then on."""

    def earliest_of(self, job: WaitingJob) -> int:
        """Return when a job could start first, s since the origin; FOREVER if never."""

    def shortage_of(self, job: WaitingJob) -> int:
        """Return when a job that started now would lack room first; FOREVER if it has enough."""

    def occupy(self, job: WaitingJob, start: int, sign: int) -> None:
        """Keep room for a job from ``start`` (-1), or give up what was kept (1)."""


class PlanOnNodes(Plan, Protocol):
    """The same on a machine of nodes."""

    @property
    def lost(self) -> Sequence[WaitingJob]:
        """Reservations that no longer hold."""


class NodesNow(Protocol):
    """The nodes of a machine, as schedulers see them.

    Attributes
    ----------
    layout, stock
        The nodes, and what is free on each: without what jobs hold that have been started in this
        pass, one by one as :meth:`Scheduler.select` yields them.
    """

    @property
    def layout(self) -> Any:
        """A ``machine.layout.Layout``."""

    @property
    def stock(self) -> Any:
        """A ``machine.selection.Stock``."""

    def fits(self, job: WaitingJob) -> bool:
        """Return whether a waiting job can start now: partitions, reservations, limits and room."""

    def walk(
        self, policy: Any, look: Look, note: Callable[..., None] | None
    ) -> Iterator[WaitingJob]:
        """Yield what an ``OrderedScheduler`` starts now, see ``OrderedScheduler._walk``."""

    def plan(
        self, look: Look, reserved: Sequence[WaitingJob], starts: dict[int, int]
    ) -> PlanOnNodes:
        """Return what running jobs and reservations leave from now on, node by node."""


class Look(NamedTuple):
    """The state of the cluster that a scheduler is called with."""

    now: int  #: the present second
    waiting: Sequence[WaitingJob]  #: the queue by submission time, then job number
    running: Sequence[RunningJob]  #: by expected end
    free: int  #: processors without a job
    total: int  #: processors of the whole machine
    nodes: NodesNow | None = None  #: the nodes; None for a pool of equal processors


class EndedJob(NamedTuple):
    """A job that has ended."""

    row: int
    processors: int
    estimate: int  #: s, the estimate when it arrived
    submit: int  #: s since the origin, as the next two
    start: int
    end: int
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class Announced:
    """A mixin that knows the announced maintenance that has not ended.

    Attributes
    ----------
    windows
        (start, end) in s since the origin, in order.
    """

    windows: tuple[tuple[int, int], ...] = ()

    @property
    def closes(self) -> int:
        """When the next maintenance begins, or began; FOREVER if there is none."""
        return self.windows[0][0] if self.windows else FOREVER

    @property
    def reopens(self) -> int:
        """When the next maintenance ends; FOREVER if there is none."""
        return self.windows[0][1] if self.windows else FOREVER


class Scheduler(Announced):
    """Decides which waiting jobs start. Subclass it and write :meth:`select`.

    The options of a policy are the keyword arguments of its constructor, each kept as an attribute
    with that name; so ``name:option=value`` makes one from text, with ``-`` for ``_`` in options.

    Attributes
    ----------
    name
        Name in summaries and options.
    plans
        Whether it plans starts ahead. Then a running job that outruns its estimate is expected to
        run on for a while (``schedulers.arithmetic.believed_end``), else to end at any moment.
    promises
        Rows of jobs and the starts promised to them since the engine last read them; the first
        promise of each job goes into the column PROMISED.
    remembers
        Whether, when it takes over from another policy, it is shown all jobs that have ended so
        far, as if it had been used from the beginning: :meth:`ended`, before :meth:`take_over`.
    windows
        Announced maintenance that has not ended, (start, end) in s since the origin, in order.
        Jobs that are expected to run into the first window may not start.
    names
        Names of users, groups and queues, if the trace has them, for options and reasons.
    drains
        Whether :meth:`select` itself respects the windows. Otherwise jobs that would run into one
        are not shown to it.
    clock
        Local time of the cluster that it runs; None for that of no log.
    nodes
        Whether it runs a machine of nodes, which :meth:`on_machine` gives it.
    compiled_only
        Whether it has a compiled form only, so that ``plain=True`` changes nothing.
    controls
        Whether it does itself what else a log says of jobs: keeps earliest starts and throttles of
        arrays, stops jobs at their limits, and runs those again that it preempted.
    stops
        Running jobs that :meth:`select` preempts, before its starts: rows, each with its fate,
        ``requeue`` or ``fail``. Emptied by the engine.
    suspends, resumes
        Running jobs that :meth:`select` or :meth:`nothing_waits` suspends before its starts, and
        suspended ones that go on: rows. Emptied by the engine.
    compiled
        Its compiled form, ``module:class``, see
        :class:`~hpcrowd.environment.engine.passes.base.CompiledPass`; only a name, so that
        policies load without it. It holds only for the class that sets it: a subclass runs plain.
    """

    seam: ClassVar = Seam("Scheduler", "--scheduler {0}")

    name = "scheduler"
    _named = False
    plans = False
    remembers = False
    promises: dict[int, int]
    names: Names = NO_NAMES
    clock: Clock | None = None
    drains = False
    compiled: ClassVar[str] = ""
    nodes: ClassVar[bool] = False
    compiled_only: ClassVar[bool] = False
    controls: ClassVar[bool] = False
    stops: list[tuple[int, str]]
    suspends: list[int]
    resumes: list[int]

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Name a class that names itself nothing after itself."""
        super().__init_subclass__(**keywords)
        if "name" in vars(cls):
            cls._named = True
        elif not cls._named:
            cls.name = cls.__name__

    def know(self, names: Names) -> None:
        """Take note of the names of users, groups and queues; called before :meth:`begin`.

        Policies whose options name some find their numbers here.

        Raises
        ------
        QuantityError
            If an option has a name that is not in the trace.
        """
        self.names = names

    def at_first(self, cluster: Cluster) -> Scheduler:
        """Return the scheduler that runs a cluster at first: itself, unless it chooses others."""
        return self

    def check_ready(self) -> None:
        """Check that the parts of the run gave it what it needs; before :meth:`begin`.

        Raises
        ------
        QuantityError
            If something is missing.
        """

    def take_charge(self, cluster: Cluster) -> None:
        """Take note of the cluster that it was given to, whose engine is there; before the run."""

    def on_machine(self, machine: Any, jobs: JobTable) -> None:
        """Take note of the ``machine.model.Machine`` that it runs, and the table of jobs.

        Called before :meth:`begin`, and only if :attr:`nodes` is true. On other schedulers' behalf,
        ``OnNodes`` chooses the nodes.
        """

    def successor(self, other: Scheduler) -> Scheduler:
        """Return the scheduler that takes over for ``other``: on machines of nodes a wrapper."""
        return other

    def submitted(self, rows: Int64s) -> None:
        """Take note of jobs that are submitted, before they arrive; on machines of nodes."""

    def refuses(self, row: int) -> str:
        """Return why an arriving job is rejected; empty if it is not. On machines of nodes."""
        return ""

    def learn_users(self) -> None:
        """Take note of all users of the table, in its order, before jobs of a state come.

        On machines of nodes, where the account of a user without one is the first that is seen.
        """

    def turns_away(self, row: int) -> str:
        """Return why a job could never run, whatever runs and waits; empty if it could.

        For jobs that wait when the run begins; on machines of nodes.
        """
        return ""

    def outlook(self, now: int, waiting: Int64s, running: Int64s) -> Outlook:
        """Return what users may see of the machine of nodes that it runs.

        Parameters
        ----------
        now
            The present second.
        waiting, running
            Rows of the jobs that wait and run.

        Raises
        ------
        QuantityError
            If it runs none, or does not show it.
        """
        raise QuantityError(
            f"scheduler {self.name}: shows users no partitions; take `slurm` or `easy`"
        )

    def begin(self, total: int) -> None:
        """Forget earlier runs: a machine of ``total`` processors starts empty.

        If you override it, call ``super().begin(total)``.
        """
        self.promises, self.stops = {}, []
        self.suspends, self.resumes = [], []

    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        """Take note of the running jobs, which another policy started.

        Called after :meth:`begin` when the policy was switched, and before :meth:`changed`.
        """

    def go_on(self, past: Past, running: Sequence[RunningJob], ended: Sequence[EndedJob]) -> None:
        """Take note of a state that the run begins with, as if it had run since the first job.

        Called after :meth:`begin`, and before :meth:`changed`. Define it if the policy remembers
        more than :attr:`remembers` says.

        Parameters
        ----------
        past
            The state.
        running
            The jobs that run, by expected end.
        ended
            The jobs that ended, by end.
        """
        self.take_over(past.now, running)
        if self.remembers:
            self.ended(past.now, ended)

    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        """Take note of the jobs that ended at this instant; called before :meth:`select`."""

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Return the jobs to start now, in order."""
        raise NotImplementedError(f"{type(self).__name__} must define select()")

    def taken_back(self, rows: Int64s) -> None:
        """Take note of waiting jobs that have left the queue; on machines of nodes."""

    def nothing_waits(self, now: int) -> None:
        """Take note, in place of a pass, that no job waits; on machines of nodes."""

    def changed(self, now: int) -> None:
        """Take note that the platform changed: running jobs may have gone back to the queue.

        The processors of the machine, estimates and windows may have changed too.
        """

    def wake(self, now: int) -> int | None:
        """Return when to call again even if nothing ends or arrives; None for no such time."""
        return None

    def reasons(self, look: Look) -> Iterable[WaitingReason]:
        """Return why each waiting job waits, the first in the queue first.

        For people who inspect a run. It must not change any state that :meth:`select` uses. The
        reasons say what :meth:`select` would do with each job if it were called now: between two
        instants that is the last decision. If a subclass overrides ``select`` but not ``reasons``,
        this version is used; it knows processors and maintenance, but not the policy.

        Parameters
        ----------
        look
            As for :meth:`select`, with all waiting jobs that it has been shown.
        """
        for place, job in enumerate(look.waiting, 1):
            yield self.reason(job, look, place)

    def reason(self, job: WaitingJob, look: Look, place: int = UNKNOWN) -> WaitingReason:
        """Return why a job waits, from processors and maintenance only; see :meth:`reasons`."""
        up, when, note = UNKNOWN, UNKNOWN, ""
        if job.processors > look.total:
            code, up = ReasonCode.TOO_LARGE, look.total
        elif job.processors > look.free:
            code = ReasonCode.NO_ROOM
        elif look.now + job.estimate > self.closes:
            code, when = ReasonCode.MAINTENANCE, self.closes
        else:
            code, note = ReasonCode.NOT_CHOSEN, self.name
        return WaitingReason(
            job.row, code, look.now, job.processors, look.free, place, lasts=job.estimate,
            reserved=when, up=up, note=note,
        )  # fmt: skip

    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        """Restore, right after :meth:`begin`, its knowledge at ``now`` in a finished run.

        For :meth:`reasons` of a finished run; a policy that learns from jobs must define it.

        Parameters
        ----------
        now
            A second of that run.
        jobs
            The table of jobs, with all times: values later than ``now`` must not be used.
        ended, running, waiting
            Rows of the jobs that had ended here by then, that ran, and that waited.
        """

    def __str__(self) -> str:
        """Return the text of this scheduler: its name, and options that are not the default."""
        kind: Any = type(self)
        options = [
            f"{option.replace('_', '-')}={_text(getattr(self, option))}"
            for option, one in _keywords_of(kind).items()
            if hasattr(self, option) and getattr(self, option) != one.default
        ]
        return f"{self.name}:{','.join(options)}" if options else self.name


def explain(policy: Scheduler, look: Look) -> Iterable[WaitingReason]:
    """Return the scheduler's reasons for its waiting jobs, see ``Scheduler.reasons``.

    If ``reasons`` belongs to another ``select`` than the one in use, it is not called, and only
    processors and maintenance are given as reasons.
    """
    kind = type(policy)
    owner: Any = next(one for one in kind.__mro__ if "reasons" in vars(one))
    told: Callable[..., Iterable[WaitingReason]] = policy.reasons
    if owner.select is not Scheduler.select and kind.select is not owner.select:
        told = partial(Scheduler.reasons, policy)
    return told(look)


#: The same for each text of a scheduler, which the engine looks at whenever jobs leave the queue.
_keywords_of = cache(keywords_of)


def _text(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def options_of(policy: type[Any]) -> dict[str, object]:
    """Return the options of a policy with their defaults: keyword arguments of its constructor."""
    found = keywords_of(policy).values()
    return {one.attribute: one.default for one in found if one.default is not REQUIRED}
