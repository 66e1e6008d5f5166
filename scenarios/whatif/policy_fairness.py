"""A new policy: who wins, who loses.

Covers: a change of the scheduler; users in groups by how much they use; users one by one, paired
with themselves; an index of fairness.

Story: heavy users fill the queue, light users complain, and the operator thinks about short jobs
first or about fair shares. Means over all jobs hide what happens: heavy users have most jobs. So
users are put into three groups by their recorded work, a third of the users each, and every user is
compared with itself under the old policy. Users who react answer the change by submitting more or
less, which the same comparison with rigid users cannot show.

Run: ``python -m hpcrowd.scenarios.whatif.policy_fairness TRACE``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.clock import HOUR
from hpcrowd.scenarios.whatif.change import groups_of
from hpcrowd.scenarios.whatif.scripts import ScriptTable, runs_of, script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


POLICIES = ("easy", "sjf", "fair-share")  # the first is the old one
USERS = ("rigid", "adjusted")
METRIC = "bounded_slowdown_mean"  # by which users are better or worse off
SEED = 0

HEAD = (
    "users",
    "policy",
    "group",
    "mean\nwait (h)",
    "median\nslowdown",
    "better\n(%)",
    "worse\n(%)",
    "fairness",
)


def runs(trace: Trace) -> dict[str, dict[str, Run]]:
    """Return the runs by users, then by policy."""
    return runs_of(trace, USERS, {policy: {"scheduler": policy} for policy in POLICIES}, seed=SEED)


def fairness(values: np.ndarray) -> float:
    """Return Jain's index, 1 where all users fare alike, 1 / users where one has everything.

    (sum x)^2 / (n sum x^2), of 1 / slowdown, so that more is better (Jain, Chiu and Hawe 1984).
    """
    rates = 1 / np.maximum(values, 1)
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if len(rates) else np.nan


def rows(users: str, by_policy: dict[str, Run]) -> list[tuple[str, ...]]:
    """Return the lines of one kind of users: for each policy every group, then all."""
    from hpcrowd.analysis.metrics import per_user

    groups = groups_of(next(iter(by_policy.values())).jobs)
    groups["all"] = np.concatenate(list(groups.values()))
    found = {policy: per_user(run.jobs) for policy, run in by_policy.items()}
    lines: list[tuple[str, ...]] = []
    for policy, values in found.items():
        for name, members in groups.items():
            mine = {
                metric: of_users[np.isin(who, members)]
                for metric, (who, of_users) in values.items()
            }
            change = _change(found[POLICIES[0]][METRIC], values[METRIC], members)
            old = policy == POLICIES[0]
            lines.append(
                (
                    users,
                    policy,
                    name,
                    f"{mine['wait_mean_s'].mean() / HOUR:.2f}",
                    f"{np.median(mine[METRIC]):.2f}",
                    "" if old else f"{100 * (change < 0).mean():.0f}",
                    "" if old else f"{100 * (change > 0).mean():.0f}",
                    f"{fairness(mine[METRIC]):.3f}",
                )
            )
    return lines


def _change(
    old: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray], members: np.ndarray
) -> np.ndarray:
    """Return new minus old value of those members who have both."""
    both, first, other = np.intersect1d(old[0], new[0], assume_unique=True, return_indices=True)
    kept = np.isin(both, members)
    change: np.ndarray = new[1][other][kept] - old[1][first][kept]
    return change


def table(trace: Trace) -> ScriptTable:
    """Replay a trace with every policy and kind of users."""
    lines = [line for users, by_policy in runs(trace).items() for line in rows(users, by_policy)]
    title = f"Users under {', '.join(POLICIES)}: {Path(trace.source).name}"
    return ScriptTable(title, HEAD, lines, words=3)


#: Prints which users fare better or worse under other policies; returns the exit code.
main = script("policy_fairness", lambda trace: [table(trace)])

if __name__ == "__main__":
    sys.exit(main())
