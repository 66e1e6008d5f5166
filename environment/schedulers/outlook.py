"""What users may see of a machine of nodes: partitions, their own standing, expected starts.

It is what ``sinfo``, ``sshare``, ``squeue --start`` and ``sbatch --test-only`` show on a real one.
A scheduler that runs nodes gives its :class:`Outlook`; users find it in ``cluster.look().machine``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from hpcrowd.environment.stops import FOREVER


class PartitionState(NamedTuple):
    """A partition at one second."""

    name: str
    up: bool  #: whether jobs may start
    nodes: int  #: that are up, as those of the next ones
    cores: int
    gpus: int
    free_nodes: int  #: without a job
    free_cores: int
    free_gpus: int
    waiting: int  #: jobs, those that name several partitions in each of them
    asked: int  #: cores that they ask for
    max_time: int | None  #: s; longest time limit, None without one
    max_nodes: int | None  #: of a job, None without a limit


class Standing(NamedTuple):
    """A user under the account and QOS of a job, at one second."""

    account: str
    qos: str
    running: int  #: jobs of the user in this QOS that run
    waiting: int  #: and that wait
    most_running: int | None  #: limit of those that run, None without one
    most_submitted: int | None  #: limit of those that run or wait
    fair_share: float  #: factor of the priority, 0 to 1; 1 is the best
    rank: int  #: by that factor, 1 is the best; equal factors have equal ranks
    users: int  #: users in accounts


class Forecast(NamedTuple):
    """When a job would start."""

    start: int  #: s since the origin; FOREVER if no start is foretold
    reason: str = ""  #: why none is, in the scheduler's words
    rejected: bool = False  #: whether the job would be rejected


class Outlook(ABC):
    """A machine at one second, after its completions and before its arrivals.

    Looking changes nothing. It is valid until the simulation goes on. Jobs are rows of the table:
    of jobs yet to be submitted, with what they ask for now, or of waiting ones. A partition is one
    that the job would be submitted to instead; empty for those that it asks for.

    Attributes
    ----------
    has_shares
        Whether the scheduler counts usage; without, all have a fair-share factor of 1.
    """

    has_shares: ClassVar[bool] = True

    @property
    @abstractmethod
    def partitions(self) -> Mapping[str, PartitionState]:
        """The partitions by name."""

    @abstractmethod
    def asked(self, row: int) -> tuple[str, ...]:
        """Return the names of the partitions that a job asks for."""

    @abstractmethod
    def standing(self, row: int) -> Standing:
        """Return how the user of a job stands."""

    @abstractmethod
    def refusal(self, row: int, partition: str = "") -> str:
        """Return why a job would be rejected, such as an account that may not use the partition.

        Empty if it would not be.
        """

    @abstractmethod
    def limit(self, row: int) -> str:
        """Return the limit that would keep a job from starting now, such as one on running jobs.

        In the scheduler's words; empty if there is none, or the job would be rejected.
        """

    @abstractmethod
    def forecast(self, row: int, partition: str = "") -> Forecast:
        """Return when a job would start if it were submitted now; of a waiting one, when it will.

        Nobody knows who submits later, or which jobs end before their limits.
        """

    @abstractmethod
    def forecast_of(self, processors: int, requested_time: int) -> Forecast:
        """Return when such a job, s, of a new user would start in the default partition."""

    def soonest(self, row: int, among: Iterable[str] = ()) -> tuple[str, Forecast]:
        """Return the partition that would start a job first, of some or of all.

        Of equal ones, the first. Empty if none would accept the job or start it.
        """
        best, found = "", Forecast(FOREVER)
        for name in among or self.partitions:
            forecast = self.forecast(row, name)
            if forecast.start < found.start:
                best, found = name, forecast
        return best, found
