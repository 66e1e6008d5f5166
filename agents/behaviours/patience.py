"""Patience: how long users let their jobs wait, and what they do with them then.

The fifth part of a composed behaviour, see :mod:`hpcrowd.agents.behaviours.composed`. A job that
still waits after its time leaves the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from hpcrowd.agents.behaviours.decisions import What, Why
from hpcrowd.agents.behaviours.parts import UNCONFIRMED, Note, Part, PartFile, setting
from hpcrowd.agents.behaviours.reactions import FACTOR
from hpcrowd.agents.behaviours.triggers import check_nodes
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.requests import Ask, resize
from hpcrowd.environment.stops import FOREVER

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.agents.patience.model import FittedPatience
    from hpcrowd.agents.patience.submissions import Submissions
    from hpcrowd.environment.jobs import Int64s

#: What users do with a job that leaves the queue.
THEN = ("never", "later", "smaller", "elsewhere")

#: The same as responses of reactions.
RESPONSE = {
    "never": "leave",
    "later": "delay",
    "smaller": "reconfigure",
    "elsewhere": "switch-partition",
}


@dataclass(frozen=True)
class Patience(Part):
    """Leave the queue after a wait, and submit again smaller, later, elsewhere or never.

    One of ``wait``, ``mean``, ``times`` and ``fitted`` says how long a job waits at most. Time
    counts from the submission; a user who looks in the same second in which a job would start takes
    it back.

    A job that never comes back is ``cancelled``, and over for its user. One that comes back keeps
    its row: its submission is then the last one, and its user waits on. A *smaller* job gets
    max(1, round(factor * p)) processors of p at once and runs longer, for the same work. On a
    machine of nodes, *elsewhere* is the partition that would start it first if it were submitted
    there now; while no other would start it sooner than it is expected to start, it stays.

    Attributes
    ----------
    wait
        s; how long every job waits.
    mean
        s; of exponentially distributed times, one drawn for each submission (our choice).
    times
        Multiple of the requested time.
    fitted
        File of ``hpcrowd fit patience``, from which one is drawn for each recorded job. It is
        longer than the recorded wait of a job that started then. Jobs that were given up in the
        record leave as the replay has them do, and jobs that reactions add wait until they start.
    then
        ``never``, ``later``, ``smaller`` or ``elsewhere``.
    after
        s; how much later a job comes back, if later.
    factor
        Share of the processors that is left, if smaller.
    most
        How often a job leaves the queue and comes back; after that it waits until it starts.

    Raises
    ------
    QuantityError
        If not exactly one time is given, or a number is out of range.
    """

    name: ClassVar[str] = "patience"
    table: ClassVar[str] = "patience"

    wait: int | None = setting(None, "how long jobs wait at most", "s", above=0)
    mean: int | None = setting(
        None, "instead: mean of waits drawn for each submission (exponential)", "s", above=0
    )
    times: float | None = setting(
        None, "instead: waits as multiples of the requested time", above=0
    )
    fitted: PartFile | None = setting(  # noqa: RUF009
        None, "instead: file of `hpcrowd fit patience`"
    )
    then: Literal["never", "later", "smaller", "elsewhere"] = setting(
        "never", "how a job that left is submitted again: never, later, smaller or elsewhere"
    )
    after: int = setting(HOUR, "later: by how much", "s", UNCONFIRMED, above=0)
    factor: float = setting(
        FACTOR, "smaller: share of the processors that is left", "", UNCONFIRMED, above=0, below=1
    )
    most: int = setting(
        3,
        "how often a job comes back; then it waits until it starts",
        "",
        UNCONFIRMED,
        least=1,
    )

    def __post_init__(self) -> None:
        lengths = ("wait", "mean", "times", "fitted")
        given = [name for name in lengths if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise QuantityError(f"patience: give one of wait, mean, times and fitted, not {found}")
        if self.fitted is not None:
            given = []
            self.model()  # so that mistakes show
        for name in (*given, "after", "most"):
            if not 0 < getattr(self, name) < float("inf"):
                raise QuantityError(f"patience {name} {getattr(self, name):g}: must be more than 0")
        check_choice("patience then", self.then, THEN)
        if not 0 < self.factor < 1:
            raise QuantityError(f"patience factor {self.factor:g}: between 0 and 1, such as 0.5")

    def model(self) -> FittedPatience:
        """Return the model of the file."""
        from hpcrowd.agents.patience.model import FittedPatience

        assert self.fitted is not None
        return FittedPatience.load(self.fitted)

    def leaving(self) -> Leaving:
        """Return what lets the jobs of users leave the queue, for one run."""
        return Leaving(self)


#: A part is its own settings.
Patience.settings = Patience


class Leaving:
    """Users with one patience, in one run.

    Parameters
    ----------
    patience
        How long they wait, and what they do then.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.name = f"patience {patience.then}"
        self._streams: dict[int, np.random.Generator] = {}
        self._model = None if patience.fitted is None else patience.model()
        self._known: Submissions | None = None  # what users knew of their recorded jobs
        self._drawn: Int64s = np.zeros(0, np.int64)  # how long these wait, s
        self._came_back: dict[int, int] = {}  # how often, by row
        self._looked: dict[int, int] = {}  # events in all at the last look, by row

    def begin(self, user: ReplayUser) -> None:
        """Prepare for a user, before the run begins."""
        if self.patience.then == "elsewhere":
            check_nodes(user, self.name)
        if self.patience.mean is not None:
            self._streams[user.number] = user.model.streams.generator("patience", user.number)
        if self._model is not None:
            self._draw(self._model, user)

    def _draw(self, fitted: FittedPatience, user: ReplayUser) -> None:
        """Draw how long the recorded jobs of a user wait."""
        from hpcrowd.agents.patience.submissions import Submissions
        from hpcrowd.environment.parts.given_up import GivenUp

        model, jobs = user.model, user.model.jobs
        waits = jobs.recorded_start - jobs.recorded_submit
        part = model.parts.of(GivenUp)
        gone = np.zeros(len(jobs), np.bool_)
        if part is not None:
            gone[: len(part.unknown)] = part.unknown != UNKNOWN
        if self._known is None:
            self._known = Submissions.of(
                jobs.user, jobs.processors, jobs.requested_time, jobs.queue,
                jobs.recorded_submit, waits, gone,
            )  # fmt: skip
            self._drawn = np.full(len(jobs), FOREVER)
        rows = np.flatnonzero((jobs.user == user.number) & ~gone)
        stream = model.streams.generator("patience", user.number)
        self._drawn[rows] = fitted.draw(self._known.take(rows), stream, waits[rows])

    def submitted(self, user: ReplayUser, rows: Int64s) -> None:
        """Set an alarm for each of the jobs that were just submitted."""
        jobs, model = user.model.jobs, user.model
        stands = (jobs.state[rows] == State.UNFINISHED) & (jobs.submit[rows] != UNKNOWN)
        for row, at in zip(rows[stands].tolist(), jobs.submit[rows[stands]].tolist(), strict=True):
            length = self._length(user, row)
            if length < FOREVER:
                until = max(at + length, model.time)  # it may have waited for long
                model.call_at(until, self._lose, user, row, at)

    def comes_back(self, row: int) -> bool:
        """Return whether a job has left the queue and was submitted again."""
        return row in self._came_back

    def _length(self, user: ReplayUser, row: int) -> int:
        """Return how long a job waits at most from now on, s."""
        patience = self.patience
        if self._model is not None:
            return int(self._drawn[row]) if row < len(self._drawn) else FOREVER
        if patience.wait is not None:
            return patience.wait
        if patience.mean is not None:
            return 1 + int(self._streams[user.number].exponential(patience.mean))
        assert patience.times is not None
        return max(1, round_half_up(patience.times * int(user.model.jobs.requested_time[row])))

    def _lose(self, user: ReplayUser, row: int, at: int) -> None:
        """Let a job leave the queue if it has waited since second ``at``."""
        jobs, model = user.model.jobs, user.model
        now = model.time
        waits = jobs.submit[row] == at and jobs.start[row] < 0
        if not waits or jobs.state[row] != State.UNFINISHED or user.leaving is not self:
            return
        patience, back = self.patience, self._came_back.get(row, 0)
        rows = np.array([row])
        before = int(jobs.processors[row]), int(jobs.run_time[row])
        if patience.then == "never":
            model.cancel(rows)
            self._note(user, row, before, (0, 0), now - at, -1)
            return
        if back == patience.most:
            return
        fewer, moved = before[0], ("", "", "")
        if patience.then == "smaller":
            fewer = max(1, round_half_up(patience.factor * before[0]))
            if fewer == before[0]:
                return
        elif patience.then == "elsewhere":
            outlook = user.site.look().machine
            here = outlook.asked(row)
            others = [one for one in outlook.partitions if one not in here]
            to, best = outlook.soonest(row, others) if others else ("", outlook.forecast(row))
            if not to or best.start >= outlook.forecast(row).start:
                if not self._in_vain(user, row):
                    model.call_at(now + self._length(user, row), self._lose, user, row, at)
                return
            moved = "partition", ",".join(here), to
        self._came_back[row] = back + 1
        later = patience.after if patience.then == "later" else 0

        def change() -> None:
            if moved[2]:
                assert jobs.requests is not None  # see check_nodes()
                jobs.requests.set(row, Ask.PARTITIONS, moved[2])
            if fewer < before[0]:
                jobs.processors[row] = fewer
                resize(jobs, row, before[0])
                for times in (jobs.run_time, jobs.requested_time):
                    times[row] = round_half_up(before[0] * int(times[row]) / fewer)

        model.put_off(rows, now + later, change)
        after = int(jobs.processors[row]), int(jobs.run_time[row])
        self._note(user, row, before, after, now - at, later, moved)
        self.submitted(user, rows)

    def _in_vain(self, user: ReplayUser, row: int) -> bool:
        """Return whether nothing is left to happen but looks that will see the same as before.

        Otherwise a run would not end in which a limit keeps jobs waiting for ever.
        """
        model = user.model
        engines = [cluster.engine for cluster in model.clusters.values()]
        if any(engine.next_time() < FOREVER for engine in engines):
            return False
        self._looked[row] = events = sum(engine.events for engine in engines)
        return all(
            isinstance(owner := getattr(function, "__self__", None), Leaving)
            and owner._looked.get(arguments[1]) == events
            for _, function, arguments in model.due()
        )

    def _note(
        self,
        user: ReplayUser,
        row: int,
        before: tuple[int, int],
        after: tuple[int, int],
        waited: int,
        again: int,
        moved: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        """Note that a job left the queue after ``waited`` s, to come again in ``again`` s."""
        now, then = user.model.time, self.patience.then
        delay = waited + again if again >= 0 else 0
        user.notes.append(
            Note(row, self.name, RESPONSE[then], now, *before, *after, delay, "", waited, *moved)
        )
        if user.log is not None:
            user.note_jobs(What.LEFT_QUEUE, Why.WAITED, np.array([row]), [again], moved[2])
