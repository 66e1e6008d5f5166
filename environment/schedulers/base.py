"""What a scheduler is, and what it knows of jobs.

A scheduler is asked once at every instant at which jobs ended or arrived, or at which it wanted to
be asked, if any jobs wait; it names the jobs to start now. The policies in this package are the
readable reference, and what to subclass for one's own. The compiled engine runs the same policies;
tests hold the two against each other.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from environment.jobs import UNKNOWN, Int64s, JobTable
from environment.schedulers.reasons import ReasonCode, WaitingReason
from environment.stops import FOREVER


class WaitingJob(NamedTuple):
    """A job in the queue."""

    row: int  #: row in the table of jobs
    processors: int
    estimate: int  #: s, the run time that the scheduler is to believe
    submit: int  #: s since the origin
    requested_time: int = UNKNOWN  #: s, what the user asked for
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class RunningJob(NamedTuple):
    """A job that runs."""

    row: int
    processors: int
    expected_end: (
        int  #: s since the origin; never before now, also when the job outruns its estimate
    )
    start: int = UNKNOWN  #: s since the origin
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class EndedJob(NamedTuple):
    """A job that is over."""

    row: int
    processors: int
    estimate: int  #: s, what was believed when it arrived
    submit: int  #: s since the origin, as the next two
    start: int
    end: int
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN


class Scheduler:
    """Decides which waiting jobs start. Subclass it and write :meth:`select`.

    What a policy can be told are keyword arguments of its constructor, each kept as an attribute of
    that name; so ``name:option=value`` makes one from text, with ``-`` for ``_`` in the option.

    Attributes
    ----------
    name
        Name for summaries, and to choose it by.
    plans
        Whether it plans starts ahead. Then a running job that outruns its estimate is expected to
        go on for a while (``environment.estimates.believed_end``), else to end any moment.
    promises
        Rows of jobs and the starts promised to them since the engine looked last; it notes the
        first of each job in the column PROMISED.
    remembers
        Whether it hears, where it takes over from another policy, of all jobs that have ended so
        far, as if it had been in charge: :meth:`ended`, before :meth:`take_over`.
    windows
        Maintenance that is announced and not over, (start, end) in s since the origin, in order.
        No job may start that is believed to run into the first.
    drains
        Whether :meth:`select` keeps to the windows. Otherwise jobs that would run into one are not
        shown to it.
    """

    name = "scheduler"
    plans = False
    remembers = False
    promises: dict[int, int]
    windows: tuple[tuple[int, int], ...] = ()
    drains = False

    def begin(self, total: int) -> None:
        """Forget earlier runs: a machine of ``total`` processors starts empty.

        One who overrides it calls ``super().begin(total)``.
        """
        self.promises = {}

    def take_over(self, now: int, running: Sequence[RunningJob]) -> None:
        """Hear that these jobs run now, whoever started them.

        Called after :meth:`begin` where the policy was switched, and before :meth:`changed`.
        """

    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        """Hear which jobs ended at this instant; called before :meth:`select`."""

    def select(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingJob]:
        """Return the jobs to start now, in order.

        Parameters
        ----------
        now
            The present second.
        waiting
            The queue by submission time, then job number.
        running
            The running jobs by expected end.
        free, total
            Processors without a job, and of the whole machine.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define select()")

    def changed(self, now: int) -> None:
        """Hear that the platform changed: running jobs may be gone, waiting ones be back.

        The processors of the machine, estimates and windows may be others too.
        """

    @property
    def closes(self) -> int:
        """When the next maintenance that is announced begins, FOREVER for none."""
        return self.windows[0][0] if self.windows else FOREVER

    @property
    def reopens(self) -> int:
        """When the next maintenance that is announced ends, FOREVER for none."""
        return self.windows[0][1] if self.windows else FOREVER

    def wake(self, now: int) -> int | None:
        """Return when to ask again though nothing ends or arrives; None for no such time."""
        return None

    def reasons(
        self,
        now: int,
        waiting: Sequence[WaitingJob],
        running: Sequence[RunningJob],
        free: int,
        total: int,
    ) -> Iterable[WaitingReason]:
        """Return why each waiting job waits, the first in the queue first.

        For people who look at a run. It must change nothing of what :meth:`select` decides by. Told
        is what would become of each job if :meth:`select` were asked now: between two instants that
        is what was decided last. Where a subclass has a ``select`` of its own and no ``reasons``,
        this one is asked; it knows processors and maintenance, and nothing of the policy.

        Parameters
        ----------
        now, waiting, running, free, total
            As for :meth:`select`; of the waiting jobs all that it has been shown.
        """
        for place, job in enumerate(waiting, 1):
            yield self.reason(job, now, free, total, place)

    def reason(
        self, job: WaitingJob, now: int, free: int, total: int, place: int = UNKNOWN
    ) -> WaitingReason:
        """Return why a job waits as far as processors and maintenance tell, see :meth:`reasons`."""
        up, when, note = UNKNOWN, UNKNOWN, ""
        if job.processors > total:
            code, up = ReasonCode.TOO_LARGE, total
        elif job.processors > free:
            code = ReasonCode.NO_ROOM
        elif now + job.estimate > self.closes:
            code, when = ReasonCode.MAINTENANCE, self.closes
        else:
            code, note = ReasonCode.NOT_CHOSEN, self.name
        return WaitingReason(
            job.row, code, now, job.processors, free, place, lasts=job.estimate, reserved=when,
            up=up, note=note,
        )  # fmt: skip

    def recall(
        self, now: int, jobs: JobTable, ended: Int64s, running: Int64s, waiting: Int64s
    ) -> None:
        """Know, right after :meth:`begin`, what it would know by ``now`` of a run that is over.

        For :meth:`reasons` of a run that is played back; a policy that learns from jobs writes it.

        Parameters
        ----------
        now
            A second of that run.
        jobs
            The table of jobs, of all times: what happened after ``now`` must not be looked at.
        ended, running, waiting
            Rows of the jobs that had ended here by then, and of those that ran and waited.
        """

    def __str__(self) -> str:
        """Return the text that makes this scheduler: its name, and options that are not default."""
        options = [
            f"{option.replace('_', '-')}={_text(getattr(self, option))}"
            for option, default in options_of(type(self)).items()
            if getattr(self, option, default) != default
        ]
        return f"{self.name}:{','.join(options)}" if options else self.name


def _text(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def options_of(policy: type[Scheduler]) -> dict[str, object]:
    """Return the options of a policy with their defaults: keyword arguments of its constructor."""
    if policy.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(policy).parameters.values())
    return {one.name: one.default for one in parameters if one.default is not one.empty}
