"""The scheduler ``fitted``: the one that the site of the record really had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, override

import numpy as np

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SchedulerError
from hpcrowd.environment.holds.rules import Cause
from hpcrowd.environment.jobs import Float64s, Int64s, JobTable, Names
from hpcrowd.environment.schedulers.base import Look, Scheduler, WaitingJob
from hpcrowd.environment.state.site_fit import MOMENTS, SO_FAR, SiteFit, fit_site

if TYPE_CHECKING:
    from hpcrowd.environment.cluster import Cluster  # circle: for its type only

#: What is done meanwhile, in words.
FITTING = "schedulers tried"

#: Least moments that a fit can be tried from: the last third is held out.
LEAST_MOMENTS = 6


@dataclass(eq=False, repr=False, kw_only=True)
class Fitted(Scheduler):
    """The site's own scheduler, fitted to the starts in the record.

    Single policies and the rules of ``site`` are tried from many moments of the record, with the
    recorded submissions and run times; what comes nearest to the recorded starts, job by job, runs
    the cluster. ``hpcrowd forecast`` fits to what came before the moment, and each future draws one
    of the schedulers that do nearly as well.

    A fit takes half a minute to a minute and a half of one core on most logs, and longer where
    thousands of jobs run at once.

    Parameters
    ----------
    moments
        How many moments of the record schedulers are tried from; the last third is held out from
        the search.
    seed
        Of everything that the fit draws.

    Raises
    ------
    QuantityError
        If there are too few moments.
    """

    name = "fitted"

    moments: int = MOMENTS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.moments < LEAST_MOMENTS:
            raise QuantityError(f"moments {self.moments}: must be at least {LEAST_MOMENTS}")
        self.fit: SiteFit | None = None
        self._chosen: Scheduler | None = None

    @property
    @override
    def remembers(self) -> bool:  # type: ignore[override]
        return self.fit is not None and any(
            self._made(one.text).remembers for one, _ in self.fit.others
        )

    def _made(self, text: str, names: Names | None = None) -> Scheduler:
        from hpcrowd.environment.schedulers.names import parse_scheduler, scheduler_for

        made = parse_scheduler(text) if names is None else scheduler_for(text, names)
        assert made is not None  # never the recorded schedule
        return made

    def fit_to(
        self,
        jobs: JobTable,
        clock: Clock,
        processors: int,
        progress: Callable[[int, int], Any] | None = None,
    ) -> SiteFit:
        """Fit to a record; see :func:`~hpcrowd.environment.state.site_fit.fit_site`."""
        self.fit = fit_site(
            jobs, clock, processors, moments=self.moments, seed=self.seed, progress=progress
        )
        return self.fit

    @override
    def at_first(self, cluster: Cluster) -> Scheduler:
        if self.fit is None:
            self.fit_to(cluster.jobs, cluster.model.clock, cluster.processors)
        assert self.fit is not None  # just now
        self._chosen = self._made(self.fit.text, cluster.jobs.names)
        return self._chosen

    @override
    def take_charge(self, cluster: Cluster) -> None:
        if self._chosen is not None:
            self._chosen.take_charge(cluster)

    @override
    def select(self, look: Look) -> Iterable[WaitingJob]:
        """Raise an error: the cluster calls the scheduler that was found instead."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise SchedulerError("fitted: finds a scheduler, and chooses no jobs; give it to a cluster")

    def drawn(self, draw: np.random.Generator) -> tuple[str, Delays]:
        """Return one of the schedulers that do nearly as well, and delays, for one future."""
        assert self.fit is not None  # a forecast fits first
        others = self.fit.others
        weights = np.array([weight for _, weight in others])
        place = int(draw.choice(len(others), p=weights / weights.sum()))
        return others[place][0].text, Delays(self.fit.delays, draw)


class Delays:
    """Draws how long a site keeps jobs back for reasons that the fitted scheduler does not know.

    Jobs that are at their user's side wait alike: one number between 0 and 1 for each user places
    all its delays in those of the record.

    Parameters
    ----------
    delays
        As ``SiteFit.delays``.
    draw
        The stream of one future.
    """

    cause = Cause.SITE

    def __init__(self, delays: Sequence[Int64s], draw: np.random.Generator) -> None:
        self._delays, self._draw = delays, draw

    def of_waiting(self, users: Int64s, waited: Int64s) -> Int64s:
        """Return how much longer waiting jobs are kept back, s, shape (jobs,).

        Parameters
        ----------
        users, waited
            Their users, and how long they have waited, s.
        """
        kinds, places = np.searchsorted(SO_FAR, waited, side="right"), self._places(users)
        found = np.zeros(len(users), np.int64)
        for kind in np.unique(kinds).tolist():
            mine = kinds == kind
            found[mine] = self._at(kind, places[mine])
        return found

    def starts(
        self, users: Sequence[int], requested: Sequence[int], at: Sequence[int]
    ) -> list[int]:
        """Return when new jobs join the queue, s; see ``holds.rules.Window``."""
        found: list[int] = (np.asarray(at) + self._at(-1, self._places(users))).tolist()
        return found

    def _places(self, users: Sequence[int] | Int64s) -> Float64s:
        """Return the place of each job in the delays of the record, one for each user."""
        if len(users) == 1:  # users submit one by one
            return self._draw.random(1)
        numbers, whose = np.unique(users, return_inverse=True)
        return self._draw.random(len(numbers))[whose]

    def _at(self, kind: int, places: Float64s) -> Int64s:
        """Return the delays of a kind at places of theirs, s."""
        known = self._delays[kind]
        return known[(places * len(known)).astype(np.int64)]
