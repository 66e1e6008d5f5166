"""Triggers on a machine of nodes: how a user stands there when a unit of work is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

import numpy as np

from hpcrowd.agents.behaviours.parts import Trigger, setting
from hpcrowd.agents.behaviours.triggers import check_nodes
from hpcrowd.environment.errors import QuantityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.agents.behaviours.reactions import Intention
    from hpcrowd.agents.behaviours.user import ReplayUser
    from hpcrowd.environment.machine.outlook import Outlook


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
