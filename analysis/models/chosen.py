"""What published models leave open and a workload cannot do without: load and users, chosen here.

Nothing of this page has a source. All of it are defaults of parameters.
"""

from __future__ import annotations

import numpy as np

from analysis.models.users import UserShares

#: Offered load that published parameters get where the paper says nothing of arrivals.
LOAD = 0.7

#: Users of published models that have none, their groups, and the exponent of the Zipf
#: distribution of what they submit.
USERS, GROUPS, EXPONENT = 100, 10, 1.0


def chosen_users() -> UserShares:
    """Return users for a model that knows none."""
    rank = np.arange(1, USERS + 1)
    weight = rank**-EXPONENT
    return UserShares(
        weights=tuple((weight / weight.sum()).tolist()),
        groups=tuple(((rank - 1) % GROUPS + 1).tolist()),
        notes=(f"{USERS} users in {GROUPS} groups are chosen here",),
    )


def gap_for_load(work: float, machine: int) -> float:
    """Return the mean time between arrivals that offers :data:`LOAD`, s.

    Parameters
    ----------
    work
        Processors x s that come with an arrival in the mean.
    machine
        Processors of the machine.
    """
    return work / (LOAD * machine)
