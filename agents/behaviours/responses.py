"""What users do instead of submitting as usual: responses to a trigger.

==================== ================================ ========================================
class                a job that the trigger concerns  its work, processors times run time
==================== ================================ ========================================
:class:`Delay`       is submitted later               the same, later
:class:`Degrade`     gets fewer processors            less: the run time stays
:class:`Reconfigure` gets fewer processors            the same (or more): it runs longer
:class:`Renounce`    is never run                     lost
:class:`Switch`      is submitted to another cluster  there
==================== ================================ ========================================

The first four are the behaviours of Madon et al. 2022 (Euro-Par, "Characterization of different
user behaviors for demand response in data centers"), whose exact rules are unconfirmed here: what
is a default is said with each parameter. The last one is named by Madon et al. 2024, section 4.1.
Triggers stand in :mod:`hpcrowd.agents.behaviours.triggers`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.declared import setting
from hpcrowd.agents.behaviours.reactions import Intention, Reaction
from hpcrowd.agents.behaviours.triggers import Trigger
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.quantities import round_half_up

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.jobs import JobTable


#: Share of the processors that users still ask for: half of them, unconfirmed (Madon et al. 2022).
FACTOR = 0.5


@dataclass(eq=False)
class Response(Reaction):
    """A reaction to a trigger. Subclass it and define :meth:`respond`.

    A subclass with settings is a dataclass whose fields say what they are.

    Parameters
    ----------
    trigger
        When to react.
    share
        Probability that a user reacts to the trigger at all, drawn once for each user.
    probability
        Probability that a user who reacts does so for a job, drawn for each of its jobs.
    name
        What it is called in the accounts; by default the response and its trigger. Draws go by it:
        reactions of the same name find the same users willing, also in another run.

    Raises
    ------
    QuantityError
        When a probability is none.
    """

    #: One word for tables and files.
    response: ClassVar[str] = "own"

    #: What the log of decisions calls it.
    logged: ClassVar[What] = What.CHANGED

    trigger: Trigger
    _: KW_ONLY
    share: float = setting(1.0, "probability that a user reacts at all", least=0, most=1)
    probability: float = setting(1.0, "for each job of a user who reacts", least=0, most=1)
    name: str = setting(
        "", "for the accounts and the draws; by default the response and the trigger"
    )

    def __post_init__(self) -> None:
        for what in ("share", "probability"):
            value = getattr(self, what)
            if not 0 <= value <= 1:
                raise QuantityError(f"{what} {value:g}: must be between 0 and 1")
        self.name = self.name or f"{self.response} {self.trigger.when}"
        self.listens = self.trigger.listens
        self._unwilling: set[int] = set()
        self._jobs: JobTable | None = None
        self._draws: np.ndarray = np.zeros(0)

    @override
    def begin(self, user: ReplayUser) -> None:
        self.trigger.begin(user)
        if self.share == 1 and self.probability == 1:
            return
        stream = user.model.streams.generator("reaction", self.name, user.number)
        self._unwilling.discard(user.number)
        if stream.random() >= self.share:
            self._unwilling.add(user.number)
        elif self.probability < 1:
            jobs = user.model.jobs
            if self._jobs is not jobs:
                self._jobs, self._draws = jobs, np.zeros(len(jobs))
            units = user.behaviour.units or user.work.by_session
            first, last = units.first[user.units.start], units.first[user.units.stop]
            # By row, so that the same jobs react whatever the units are and whenever they come.
            self._draws[np.sort(units.rows[first:last])] = stream.random(last - first)

    @override
    def heard(self, user: ReplayUser, unit: int, now: int) -> None:
        self.trigger.heard(user, unit, now)

    @override
    def react(self, user: ReplayUser, intention: Intention) -> None:
        if user.number in self._unwilling:
            return
        which = self.trigger.which(user, intention)
        if not which.any():
            return
        which &= intention.stands
        if self.probability < 1:
            which &= self._draws[intention.rows] < self.probability
        for place in np.flatnonzero(which).tolist():
            self.respond(user, intention, place)

    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        """Change one job of an intention."""
        raise NotImplementedError(f"{type(self).__name__} has to define respond()")


@dataclass(eq=False, kw_only=True)
class Delay(Response):
    """Submit when the trigger is over, or some time later.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`Response`.
    by
        s later; None for the end of the period that triggers.

    Raises
    ------
    QuantityError
        When the trigger has no end and no time is given.
    """

    response = "delay"
    logged = What.DELAYED

    by: int | None = setting(None, "so much later instead, needed when = patience", "s", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by is None and not self.trigger.ends:
            raise QuantityError(f"delay {self.trigger.when}: has no end to wait for; give by, s")
        if self.by is not None and self.by <= 0:
            raise QuantityError(f"delay by {self.by} s: more than 0")

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        at = int(intention.at[place])
        later = self.trigger.until(user, at) if self.by is None else at + self.by
        intention.delay(place, later, self.name)


@dataclass(eq=False, kw_only=True)
class Degrade(Response):
    """Ask for fewer processors for the same time: less work.

    A job of p processors gets max(1, round(factor * p)); one that this does not change is left.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`Response`.
    factor
        Share of the processors that is left; see :data:`FACTOR`.
    """

    response = "degrade"
    logged = What.DEGRADED

    factor: float = setting(
        FACTOR, "share of the processors that is left (unconfirmed)", above=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < 1:
            raise QuantityError(
                f"{self.response} factor {self.factor:g}: between 0 and 1, such as 0.5"
            )

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        jobs, row = user.model.jobs, intention.rows[place]
        before = int(jobs.processors[row])
        after = max(1, round_half_up(self.factor * before))
        if after < before:
            run, requested = self.times(
                int(jobs.run_time[row]), int(jobs.requested_time[row]), before, after
            )
            intention.resize(place, after, run, requested, self.name, self.response)

    def times(self, run: int, requested: int, before: int, after: int) -> tuple[int, int]:
        """Return run time and requested time, s, of a job with fewer processors."""
        return run, requested


@dataclass(eq=False, kw_only=True)
class Reconfigure(Degrade):
    """Ask for fewer processors for a longer time: the same work.

    A job of p processors and run time r gets p' = max(1, round(factor * p)) processors and the run
    time p * r / (p' * efficiency); its requested time likewise. A job that this gives no fewer
    processors is left.

    Parameters
    ----------
    trigger, factor, share, probability, name
        See :class:`Degrade`.
    efficiency
        Work of a second on one of the fewer processors, where that on one of the former is 1. Below
        1 the job needs more work than before, above 1 less. 1 is unconfirmed (Madon et al. 2022).
    """

    response = "reconfigure"
    logged = What.RECONFIGURED

    efficiency: float = setting(
        1.0, "work of a second on one of the fewer processors (unconfirmed)", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.efficiency < float("inf"):
            raise QuantityError(f"efficiency {self.efficiency:g}: must be positive, such as 0.9")

    @override
    def times(self, run: int, requested: int, before: int, after: int) -> tuple[int, int]:
        fewer = after * self.efficiency
        return round_half_up(before * run / fewer), round_half_up(before * requested / fewer)


class Renounce(Response):
    """Do not run it. It is recorded, and over for its user when it would have been submitted."""

    response = "renounce"
    logged = What.RENOUNCED

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        intention.renounce(place, self.name)


@dataclass(eq=False)
class Switch(Response):
    """Submit to another cluster of the simulation.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`Response`.
    to
        Its name, see ``hpcrowd.environment.Simulation``.

    Raises
    ------
    QuantityError
        Before anything runs, when there is no cluster of this name.
    """

    response = "switch"
    logged = What.SWITCHED

    to: str = setting(..., "name of the cluster")

    @override
    def begin(self, user: ReplayUser) -> None:
        user.model.site(self.to)
        super().begin(user)

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        intention.switch(place, self.to, self.name)
