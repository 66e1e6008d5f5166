"""Song et al. 2005: statements of the text that are not in a table, checked on each log.

The bounds of the rules are ours, each with its reason. They were set after looking at KTH and
LANL-CM5, so on these two logs they do not test the statements.
"""

from __future__ import annotations

import numpy as np

from hpcrowd.analysis.features.distance import apart
from hpcrowd.analysis.models.jobs.mugm import GROUPS
from hpcrowd.scenarios.studies.song2005.measures import GROUPED, MORE_CLUSTERS, TraceOutcomes
from hpcrowd.scenarios.studies.study import Finding, Rule

#: "A few users": one in ten. "Very few jobs": less than the first line of Table II ends at.
FEW, VERY_FEW = 0.1, 100

#: "Most", "many": more than half.
MOST = 0.5

#: Users of Fig. 5, and how far apart the means of the largest and the smallest have to be.
TOP, APART = 10, 4.0

#: "Very rare", section IV-A.
RARE = 0.003

#: Groups are "distinct" from here on: KS distance to all other jobs, several times that of good
#: agreement in section V-B.
DISTINCT = 0.2

#: "Limited impact", section V-A: less than 1 % of the area. "Minor contribution": less than 5 %.
LIMITED, MINOR = 1.0, 5.0

#: "Below 0.10 in all cases", section V-B.
GOOD = 0.10

#: Two means differ from this many standard errors on.
ERRORS = 2.0

#: s; "below 10 seconds", section V-A.
SHORT_S = 10

#: Users that the text names for high and for low parallelism, section III.
HIGH, LOW = (91, 93), (18, 67)


def _counts(one: TraceOutcomes) -> np.ndarray:
    return np.sort(np.bincount(one.jobs.place))[::-1]


def _few_users(one: TraceOutcomes) -> Finding:
    counts = _counts(one)
    share = float(counts[: int(np.ceil(FEW * len(counts)))].sum() / counts.sum())
    return {"share": share}, f"{100 * share:.0f} %", share > MOST


def _many_with_few(one: TraceOutcomes) -> Finding:
    share = float((_counts(one) < VERY_FEW).mean())
    return {"share": share}, f"{100 * share:.0f} %", share > MOST


def _heterogeneous(one: TraceOutcomes) -> Finding:
    jobs = np.bincount(one.jobs.place)
    means = np.bincount(one.jobs.place, one.jobs.processors) / jobs
    top = means[np.argsort(-jobs, kind="stable")[:TOP]]
    low, high = float(top.min()), float(top.max())
    return {"least": low, "most": high}, f"{low:.1f} to {high:.1f}", high > APART * low


def _named_users(one: TraceOutcomes) -> Finding:
    means = {
        user: float(one.jobs.processors[one.jobs.user == user].mean())
        for user in HIGH + LOW
        if (one.jobs.user == user).any()
    }
    numbers = {f"user_{user}": mean for user, mean in means.items()}
    if len(means) < len(HIGH + LOW):
        return numbers, "users not there", None
    words = ", ".join(f"{user}: {mean:.1f}" for user, mean in means.items())
    return numbers, words, min(means[u] for u in HIGH) > max(means[u] for u in LOW)


def _zeros(one: TraceOutcomes) -> Finding:
    share = 1 - len(one.jobs.user) / len(one.workload)
    return {"share": share}, f"{100 * share:.2f} %", share < RARE


def _more_clusters(one: TraceOutcomes) -> Finding:
    """More clusters are not better: the mean of both distances over seeds."""
    means, errors = {}, {}
    for kind in (GROUPED, *(f"{count} clusters" for count in MORE_CLUSTERS)):
        values = np.mean([one.values("ks_processors", kind), one.values("ks_run_time", kind)], 0)
        means[kind] = float(values.mean())
        errors[kind] = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
    better = [
        kind
        for kind in means
        if means[GROUPED] - means[kind] > ERRORS * np.hypot(errors[GROUPED], errors[kind])
    ]
    numbers = {("4 clusters" if kind == GROUPED else kind): mean for kind, mean in means.items()}
    words = ", ".join(f"{kind.split()[0]}: {mean:.4f}" for kind, mean in numbers.items())
    return numbers, words, not better


def _two_groups(one: TraceOutcomes) -> Finding:
    label = one.groupings[2].label[one.jobs.place]
    short = [float((one.jobs.run_time[label == k] < SHORT_S).mean()) for k in (0, 1)]
    serial = [float((one.jobs.processors[label == k] == 1).mean()) for k in (0, 1)]
    median = [float(np.median(one.jobs.run_time[label == k])) for k in (0, 1)]
    words = (
        f"short {100 * short[0]:.0f} and {100 * short[1]:.0f} %, serial {100 * serial[0]:.0f} and "
        f"{100 * serial[1]:.0f} %, median {median[0]:,.0f} and {median[1]:,.0f} s"
    )
    numbers = {
        f"{name}_{k + 1}": values[k]
        for name, values in (("short", short), ("serial", serial), ("median_s", median))
        for k in (0, 1)
    }
    holds = short[0] > short[1] and serial[1] > serial[0] and median[1] > median[0]
    return numbers, words, holds


def _groups_differ(one: TraceOutcomes) -> Finding:
    label = one.groupings[GROUPS].label[one.jobs.place]
    found = []
    for group in range(int(label.max()) + 1):
        mine = label == group
        found.append(
            max(
                apart(values[mine], values[~mine]).ks
                for values in (one.jobs.processors.astype(np.float64), one.jobs.run_time)
            )
        )
    numbers = {f"group_{group}": ks for group, ks in enumerate(found, 1)}
    return numbers, ", ".join(f"{ks:.2f}" for ks in found), min(found) >= DISTINCT


def _specific_group(one: TraceOutcomes) -> Finding:
    """A group of few users and jobs with a large area: 6 % of the jobs, over 20 % of the area."""
    shares = one.groupings[GROUPS].shares
    best = min(shares, key=lambda one: abs(one.jobs - 6.7) + abs(one.area - 21.3))
    words = f"{best.area:.1f} % of area, {best.jobs:.1f} % of jobs, {best.users:.1f} % of users"
    numbers = {"area": best.area, "jobs": best.jobs, "users": best.users}
    return numbers, words, best.area > 20 and best.jobs < 7.5 and best.users < 5


def _serial_group(one: TraceOutcomes) -> Finding:
    label = one.groupings[GROUPS].label[one.jobs.place]
    last = label == label.max()
    serial = float((one.jobs.processors[last] == 1).mean())
    users = one.groupings[GROUPS].shares[-1].users
    words = f"{100 * serial:.0f} % serial, {users:.1f} % of users"
    return {"serial": serial, "users": users}, words, serial > MOST and users > 40


def _negligible(one: TraceOutcomes) -> Finding:
    least = one.groupings[6].shares[-1].area
    return {"area": least}, f"{least:.1f} %", least < LIMITED


def _minor(one: TraceOutcomes) -> Finding:
    """The share of the area of the two smallest of six groups."""
    area = sum(shares.area for shares in one.groupings[6].shares[-2:])
    return {"area": area}, f"{area:.1f} %", area < MINOR


def _below_a_tenth(one: TraceOutcomes) -> Finding:
    worst = max(max(one.values(name)) for name in ("ks_processors", "ks_run_time"))
    return {"ks": worst}, f"{worst:.3f}", worst < GOOD


RULES = (
    Rule(
        "few users submit most jobs", "III",
        "Few users are responsible for thousands of jobs: jobs of the most active tenth; "
        "more than half", _few_users,
    ),
    Rule(
        "many users submit few jobs", "III",
        "Many users generate very few jobs: users with less than 100; more than half",
        _many_with_few,
    ),
    Rule(
        "users differ", "III, Fig. 5",
        "Mean parallelism of the ten most active users is heterogeneous: least and most; "
        "a factor of 4", _heterogeneous,
    ),
    Rule(
        "parallel and serial users", "III, Fig. 5",
        "Users 91 and 93 submit with high parallelism, 18 and 67 with lower: mean processors",
        _named_users, ("KTH",),
    ),
    Rule(
        "zeros are rare", "IV-A", "Values of 0 are very rare: jobs left out; less than 0.3 %",
        _zeros,
    ),
    Rule(
        "4 clusters of run times suffice", "IV-B",
        "Quality does not increase beyond 4 clusters: mean of both KS distances; 8 and 16 not "
        "better by two standard errors", _more_clusters,
    ),
    Rule(
        "2 groups: short and long", "V-A",
        "The first of 2 groups has more jobs below 10 s, the other more serial and longer ones",
        _two_groups, ("KTH",),
    ),
    Rule(
        "groups differ", "V-A",
        "Each of 4 groups is distinct: larger of the KS distances of its processors and run times "
        "to those of all other jobs; at least 0.2", _groups_differ,
    ),
    Rule(
        "a small group with much area", "V-A",
        "One of 4 groups has 6 % of the jobs, over 20 % of the area, 3 % of the users",
        _specific_group, ("KTH",),
    ),
    Rule(
        "a serial group", "V-A",
        "The last of 4 groups concentrates on serial jobs and has over 40 % of the users",
        _serial_group, ("KTH",),
    ),
    Rule(
        "6 groups: a negligible one", "V-A",
        "Some of 6 groups contribute less than 1 % of the area: the smallest", _negligible,
    ),
    Rule(
        "more groups are minor ones", "V-A",
        "Groups beyond 4 have minor contribution: area of the two smallest of 6; below 5 %",
        _minor,
    ),
    Rule(
        "all distances below 0.10", "V-B",
        "KS is below 0.10 in all cases: the largest over attributes and seeds", _below_a_tenth,
    ),
)  # fmt: skip
