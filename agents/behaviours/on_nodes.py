"""Reactions of users on a machine of nodes: they ask for something else.

========================= ==================================== ===================================
class                     a job that the trigger concerns      its work, processors times run time
========================= ==================================== ===================================
:class:`SwitchPartition`  is submitted to another partition    the same
:class:`FewerGpus`        asks for fewer GPUs                  more: it runs longer
:class:`LessTime`         asks for less time                   the same
:class:`LessMemory`       asks for less memory                 the same
========================= ==================================== ===================================

All of them change a job before it is submitted. How much time and memory users ask for too much is
known from many logs; how they change it is not: the defaults are ours.

Two triggers, :class:`FairShareBelow` and :class:`AtLimit`, ask how a user stands on the machine
when a unit of work is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import What
from hpcrowd.agents.behaviours.parts import Trigger, setting
from hpcrowd.agents.behaviours.reactions import FACTOR, Response
from hpcrowd.agents.behaviours.triggers import check_nodes
from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.environment.requests import Ask, asked_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.schedulers.outlook import Outlook


#: The name of whichever partition would start a job first.
SOONEST = "soonest"


@dataclass(eq=False, kw_only=True)
class AskOtherwise(Response):
    """A response that changes what a job asks of a machine of nodes; define :meth:`change`.

    Jobs that an earlier reaction sends to another cluster are left alone.
    """

    logged = What.CHANGED

    @override
    def begin(self, user: ReplayUser) -> None:
        check_nodes(user, f"reaction {self.name}")
        super().begin(user)

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        if intention.cluster is None or intention.cluster[place] == user.site.name:
            self.change(user, intention, place)

    def change(self, user: ReplayUser, intention: Intention, place: int) -> None:
        """Change one job of an intention."""
        raise NotImplementedError(f"{type(self).__name__} must define change()")


@dataclass(eq=False, kw_only=True)
class SwitchPartition(AskOtherwise):
    """Submit to another partition: a given one, or the one that would start the job first.

    A partition that would reject the job, such as for its requested time, is left out. A job that
    names several partitions asks for the new one only.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    to
        Its name, or ``soonest``, by the expected starts of
        :class:`~hpcrowd.environment.schedulers.outlook.Outlook`.
    margin
        s; with ``soonest``, only if the job starts earlier by more than this.
    among
        With ``soonest``, the partitions to look at; all if empty.

    Raises
    ------
    QuantityError
        Before the run, if the machine has no partition of a name.
    """

    response = "switch-partition"
    logged = What.SWITCHED

    to: str = setting(SOONEST, "name of the partition, or soonest: which would start the job first")
    margin: int = setting(0, "soonest: only if it starts earlier by more than this", "s", least=0)
    among: tuple[str, ...] = setting((), "soonest: the partitions to look at; by default all")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.margin < 0:
            raise QuantityError(f"switch-partition margin {self.margin} s: must be 0 or more")

    @override
    def begin(self, user: ReplayUser) -> None:
        super().begin(user)
        known = user.site.look().machine.partitions
        for name in (*self.among, *([] if self.to == SOONEST else [self.to])):
            if name not in known:
                raise QuantityError(
                    f"reaction {self.name}: partition {name!r}: {not_one_of(name, known)}"
                )

    @override
    def change(self, user: ReplayUser, intention: Intention, place: int) -> None:
        outlook, row = user.site.look().machine, int(intention.rows[place])
        before, to = outlook.asked(row), self.to
        if to == SOONEST:
            others = [one for one in self.among or outlook.partitions if one not in before]
            to, best = outlook.soonest(row, others) if others else ("", outlook.forecast(row))
            if not to or best.start + self.margin >= outlook.forecast(row).start:
                return
        elif before == (to,) or outlook.refusal(row, to):
            return
        change = "partition", ",".join(before), to
        intention.ask(place, {Ask.PARTITIONS: to}, change, self.name, self.response)


@dataclass(eq=False, kw_only=True)
class FewerGpus(AskOtherwise):
    """Ask for fewer GPUs, and run longer.

    A job of g GPUs, in all, per node or per task, gets g' = max(1, round(factor * g)); its run time
    and its requested time grow by (g / g') ** exponent. It keeps its processors.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    factor
        Share of the GPUs that is left.
    exponent
        1 if half the GPUs take twice as long, 0 if they take as long as before.
    """

    response = "fewer-gpus"
    logged = What.RECONFIGURED

    factor: float = setting(
        FACTOR, "share of the GPUs that is left (unconfirmed)", above=0, below=1
    )
    exponent: float = setting(
        1.0, "the run time grows by GPUs before / after, to this power (unconfirmed)", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_factor(self)
        if not 0 <= self.exponent < float("inf"):
            raise QuantityError(f"fewer-gpus exponent {self.exponent:g}: 0 or more, such as 0.9")

    @override
    def change(self, user: ReplayUser, intention: Intention, place: int) -> None:
        jobs, row = user.model.jobs, int(intention.rows[place])
        assert jobs.requests is not None  # see check_nodes()
        asked: dict[Ask, int] = {}
        longer, change = 1.0, ("", "", "")
        for ask in (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK):
            gpus = int(jobs.requests[ask][row])
            fewer = max(1, round_half_up(self.factor * gpus))
            if fewer < gpus:
                asked[ask] = fewer
                longer = max(longer, gpus / fewer)
                change = ask.name.lower(), str(gpus), str(fewer)
        if asked:
            growth = longer**self.exponent
            times = [
                round_half_up(growth * int(column[row])) if column[row] >= 0 else int(column[row])
                for column in (jobs.run_time, jobs.requested_time)
            ]
            intention.ask(place, asked, change, self.name, self.response, times)


@dataclass(eq=False, kw_only=True)
class LessTime(Response):
    """Ask for less time: nearer to what the job needs. Also for a pool of equal processors.

    A job of run time r and requested time q asks for t + factor * (q - t) with t = times * r, if
    that is less than q.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    factor
        Share of the surplus that is left; 0 for none.
    times
        What the job needs, as a multiple of its run time. Below 1 the request may be too short, and
        the job is killed if limits are kept.
    """

    response = "less-time"
    logged = What.CHANGED

    factor: float = setting(
        FACTOR,
        "share of the surplus of requested time that is left (unconfirmed)",
        least=0,
        below=1,
    )
    times: float = setting(
        1.0, "what the job needs, in run times; below 1 it may be killed (unconfirmed)", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.factor < 1:
            raise QuantityError(f"less-time factor {self.factor:g}: 0 to less than 1, such as 0.5")
        if not 0 <= self.times < float("inf"):
            raise QuantityError(f"less-time times {self.times:g}: 0 or more, such as 1.2")

    @override
    def respond(self, user: ReplayUser, intention: Intention, place: int) -> None:
        jobs, row = user.model.jobs, int(intention.rows[place])
        run, asked = int(jobs.run_time[row]), int(jobs.requested_time[row])
        needs = self.times * run
        if run >= 0 and needs < asked:
            less = max(round_half_up(needs + self.factor * (asked - needs)), 1)
            if less < asked:
                change = "requested_time", str(asked), str(less)
                intention.ask(place, {}, change, self.name, self.response, (run, less))


@dataclass(eq=False, kw_only=True)
class LessMemory(AskOtherwise):
    """Ask for less memory: m MB per node or core become max(1, round(factor * m)).

    How much memory jobs use is not simulated: none of them fails for lack of it. Jobs that ask for
    none, or for all of a node, stay as they are.

    Parameters
    ----------
    trigger, share, probability, name
        See :class:`~hpcrowd.agents.behaviours.reactions.Response`.
    factor
        Share of the memory that is left.
    """

    response = "less-memory"

    factor: float = setting(
        FACTOR, "share of the memory that is left (unconfirmed)", above=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_factor(self)

    @override
    def change(self, user: ReplayUser, intention: Intention, place: int) -> None:
        row = int(intention.rows[place])
        for ask, memory in asked_memory(user.model.jobs, row).items():
            less = max(1, round_half_up(self.factor * memory))
            if less < memory:
                change = ask.name.lower(), str(memory), str(less)
                intention.ask(place, {ask: less}, change, self.name, self.response)


def _check_factor(reaction: FewerGpus | LessMemory) -> None:
    if not 0 < reaction.factor < 1:
        raise QuantityError(
            f"{reaction.response} factor {reaction.factor:g}: between 0 and 1, such as 0.5"
        )


class SeesNodes(Trigger):
    """A trigger that looks at a machine of nodes, at each job of a unit when the unit is due."""

    @override
    def begin(self, user: ReplayUser) -> None:
        check_nodes(user, f"trigger {self.when}")

    @override
    def which(self, user: ReplayUser, intention: Intention) -> NDArray[np.bool_]:
        outlook = user.site.look().machine
        return np.array([self.concerns(outlook, row) for row in intention.rows.tolist()], bool)

    def concerns(self, outlook: Outlook, row: int) -> bool:
        """Return whether it is active for a job."""
        raise NotImplementedError(f"{type(self).__name__} has to define concerns()")


@dataclass(eq=False)
class FairShareBelow(SeesNodes):
    """Active while the user's fair-share factor is small, so that jobs would wait behind others.

    The factor is that of the account of each job, as ``sshare`` shows it: 1 for users who have used
    nothing, near 0 for those who have used much more than their share.

    Parameters
    ----------
    below
        Active while the factor is smaller.

    Raises
    ------
    QuantityError
        Before the run, if the scheduler counts no usage.
    """

    when = "fair-share"

    below: float = setting(..., "the user's fair-share factor is smaller than this", above=0)

    def __post_init__(self) -> None:
        if not self.below > 0:
            raise QuantityError(f"fair-share below {self.below:g}: more than 0, such as 0.5")

    @override
    def begin(self, user: ReplayUser) -> None:
        super().begin(user)
        if not user.site.look().machine.has_shares:
            raise QuantityError(
                f"trigger {self.when}: this scheduler counts no usage of a machine of nodes; take "
                "--scheduler slurm"
            )

    @override
    def concerns(self, outlook: Outlook, row: int) -> bool:
        return outlook.standing(row).fair_share < self.below


@dataclass(eq=False)
class AtLimit(SeesNodes):
    """Active for jobs that a limit of a QOS or an account would keep waiting, whatever is free.

    Such as the number of running jobs of a user, or the cores or GPUs in use. It is never active on
    a machine that does not enforce limits.
    """

    when = "at-limit"

    @override
    def concerns(self, outlook: Outlook, row: int) -> bool:
        return bool(outlook.limit(row))


#: Each trigger in its forms, for :mod:`hpcrowd.agents.behaviours.parts`.
FAIR_SHARE, AT_LIMIT = (FairShareBelow,), (AtLimit,)
