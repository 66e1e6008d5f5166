"""Song et al. 2005, the user group model MUGM: the study, its output, and how it is run.

Several versions of a log may be available. The one whose number of jobs is nearest to that of Table
I is measured; the others are listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.features.stats import apart
from hpcrowd.analysis.models.jobs.mugm import GROUPS
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.studies.options import PROCESSES, TRACES, Option
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.render import Picture, Rows, Table, range_text
from hpcrowd.scenarios.studies.running import Steps, logs_of, nearest_versions, run_tasks
from hpcrowd.scenarios.studies.song2005.measures import (
    BORDER_MET,
    COUNTS,
    DISTANCES,
    GROUPED,
    GROUPS_OF,
    GROUPS_ON,
    KINDS,
    MORE_CLUSTERS,
    ONE,
    POINTS,
    SHARES,
    SHUFFLED,
    TITLES,
    Jobs,
    Quality,
    TraceOutcomes,
    figures_of,
    groups_figure,
    published_groups,
    published_jobs,
    published_log,
    published_quality,
)
from hpcrowd.scenarios.studies.study import Finding, PublishedStudy, rules_of
from hpcrowd.scenarios.terminal import Progress

# ---- statements of the text ------------------------------------------------------------------
# The bounds of the rules are ours, each with its reason. They were set after looking at KTH and
# LANL-CM5, so on these two logs they do not test the statements.

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


RULES = rules_of(
    "song2005/statements",
    {
        "few users submit most jobs": _few_users,
        "many users submit few jobs": _many_with_few,
        "users differ": _heterogeneous,
        "parallel and serial users": _named_users,
        "zeros are rare": _zeros,
        "4 clusters of run times suffice": _more_clusters,
        "2 groups: short and long": _two_groups,
        "groups differ": _groups_differ,
        "a small group with much area": _specific_group,
        "a serial group": _serial_group,
        "6 groups: a negligible one": _negligible,
        "more groups are minor ones": _minor,
        "all distances below 0.10": _below_a_tenth,
    },
)


# ---- the study -------------------------------------------------------------------------------

#: The logs of Table I by name. The paper leaves out NASA, as unusual.
STUDIED = logs_of("song2005")

#: Default number of seeds of each fit.
SEEDS = 8


@dataclass
class Song2005(PublishedStudy):
    """Groups of users and jobs generated by MUGM, on every available log of Table I."""

    rules = RULES
    listed = STUDIED

    traces: dict[str, TraceOutcomes]  #: The results by the name of the log.
    seeds: int  #: Number of seeds of each fit.

    def tables(self) -> Sequence[Table]:
        """Return the logs, and Tables II to V."""
        traces = self.traces.values()
        users = ("jobs of a user", "users (%)", "published", f"ours, {BORDER_MET} for 500")
        counted = user_rows(self.traces["KTH"]) if "KTH" in self.traces else []
        return self.tables_of(
            {
                "logs": map(log_row, traces),
                "users": (users, counted),
                "groups": [row for one in traces for row in group_rows(one)],
                "staying": [row for one in traces for row in stay_rows(one)],
                "ks": [row for one in traces for row in ks_rows(one)],
                "correlation": map(correlation_row, traces),
            }
        )

    def summary(self) -> list[str]:
        """Return what was reached and what holds."""
        lines = [
            f"{self.score} required figures reached",
            self.checked,
            f"Means are over {self.seeds} seeds of fits, of what is generated and of shuffled "
            "users",
        ]
        if GROUPS_ON in self.traces:
            one = self.traces[GROUPS_ON]
            lines.append(
                f"{GROUPS_ON}, {GROUPS_OF} groups: shares from {one.samples_within()} of "
                f"{self.seeds} random samples of run times are within {POINTS:g} points of the "
                "published ones, too"
            )
        return lines

    def pictures(self) -> Sequence[Picture]:
        """Return the maps of each trace."""
        return [
            Picture.of(f"{one.trace.lower()}-{count}-groups", groups_figure, one, count)
            for one in self.traces.values()
            for count in figures_of(one)
        ]

    def rows(self) -> Rows:
        """Return every figure in long form."""
        return self.row_heading, [row for one in self.traces.values() for row in _figures(one)]

    def origin(self) -> dict[str, Any]:
        """Return the logs, and the number of seeds."""
        return {"seeds": self.seeds, **super().origin()}


# ---- rows of tables ----------------------------------------------------------------------------


def log_row(one: TraceOutcomes) -> list[str]:
    """Return the file of a log."""
    return [
        one.trace,
        str(one.file.get("source", one.workload.name)),
        f"{len(one.workload):,}",
        f"{published_jobs(one.trace):,}",
        f"{len(one.groupings[COUNTS[0]].label):,}",
        published_log(one.trace)["users"],
    ]


def user_rows(one: TraceOutcomes) -> list[list[str]]:
    """Return Table II."""
    published, ours = published_rows("song2005_table2"), one.users_percent()
    return [
        [row["jobs"], f"{share:.2f}", row["users_percent"], f"{moved:.2f}"]
        for row, share, moved in zip(published, ours, one.users_percent(BORDER_MET), strict=True)
    ]


def group_rows(one: TraceOutcomes) -> list[list[str]]:
    """Return Table III."""
    rows = []
    for count, grouping in one.groupings.items():
        printed = published_groups(one.trace, count)
        for group, shares in enumerate(grouping.shares):
            row = [one.trace, str(count), str(group + 1)]
            for share in SHARES:
                row += [
                    f"{getattr(shares, share):.1f}",
                    range_text(grouping.ranges(group, share) or (), ".1f"),
                    f"{printed[group][share].value:.1f}",
                ]
            rows.append(row)
    return rows


def stay_rows(one: TraceOutcomes) -> list[list[str]]:
    """Return the share of jobs that stay in their group."""
    return [
        [one.trace, str(count), "-" if grouping.staying is None else f"{grouping.staying:.1f}"]
        for count, grouping in one.groupings.items()
    ]


def ks_rows(one: TraceOutcomes) -> list[list[str]]:
    """Return Table IV."""
    return [
        [
            one.trace,
            TITLES[distance],
            f"{one.mean(distance):.4f}",
            range_text(one.values(distance), ".3f", once=False),
            f"{one.mean(distance, SHUFFLED):.4f}",
            f"{one.mean(distance, ONE):.4f}",
            published_quality(one.trace)[column].text,
        ]
        for distance, column in DISTANCES.items()
    ]


def correlation_row(one: TraceOutcomes) -> list[str]:
    """Return Table V."""
    printed = published_quality(one.trace)
    return [
        one.trace,
        f"{one.jobs.correlation:.3f}",
        printed["correlation_original"].text,
        f"{one.mean('correlation'):.3f}",
        range_text(one.values("correlation"), ".2f", once=False),
        printed["correlation_synthetic"].text,
    ]


def _figures(one: TraceOutcomes) -> list[list[Any]]:
    """Return every figure of a trace: table, log, what, ours, least, most and published."""
    rows: list[list[Any]] = []
    for count, grouping in one.groupings.items():
        printed = published_groups(one.trace, count)
        for group, shares in enumerate(grouping.shares):
            for share in SHARES:
                what = f"{count} groups, group {group + 1}, {share} (%)"
                low, high = grouping.ranges(group, share) or (None, None)
                published = printed[group][share].value
                rows.append(["III", one.trace, what, getattr(shares, share), low, high, published])
    values = published_quality(one.trace)
    for kind in one.qualities:
        for name, column in {**DISTANCES, "correlation": "correlation_synthetic"}.items():
            table, found = "IV" if name in DISTANCES else "V", one.values(name, kind)
            rows.append(
                [
                    table, one.trace, f"{name}, {kind}", one.mean(name, kind), min(found),
                    max(found), values[column].value if kind == GROUPED else None,
                ]
            )  # fmt: skip
    original = values["correlation_original"].value
    ours = one.jobs.correlation
    return [*rows, ["V", one.trace, "correlation, original", ours, None, None, original]]


# ---- running -----------------------------------------------------------------------------------


class Task(NamedTuple):
    """A fit and the jobs generated from it."""

    #: The log, and the grouping of users.
    trace: str
    kind: str
    seed: int  #: Seed of everything random.


def quality_of(traces: Mapping[str, Jobs], task: Task) -> Quality:
    """Return how close generated jobs are; the jobs are by the name of their trace."""
    return traces[task.trace].quality(task.kind, task.seed)


def reproduce_song2005(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    seeds: Annotated[int | None, Option("Seeds of each fit; by default 8.", least=1)] = None,
    workers: int = PROCESSES,
    only: Iterable[str] = STUDIED,
) -> Song2005:
    """Run the study on every available log, or those named.

    The folder has the traces, plain or gzipped. The results do not depend on the number of
    processes that share the work; there are :data:`SEEDS` seeds of each fit unless given. Raises
    TraceError when there is no log at all, or one that cannot be read or has no job, QuantityError
    when a number is out of range, and ModelFitError when a library is not installed.
    """
    count = SEEDS if seeds is None else seeds
    if count < 1:
        raise QuantityError(f"seeds {count}: must be 1 or more")
    wanted = set(only)
    logs = {name: log for name, log in STUDIED.items() if name in wanted}
    read, facts = {}, {}
    for name, workload, file in nearest_versions(traces, logs, published_jobs, progress, "all"):
        read[name], facts[name] = workload, file
    tasks = [Task(name, kind, seed) for name in read for kind in KINDS for seed in range(count)]
    work = partial(quality_of, {name: Jobs(workload) for name, workload in read.items()})
    quality = dict(run_tasks(work, tasks, workers, progress, lambda task: task.trace))
    steps = Steps(len(read), progress)
    measured = {}
    for name, workload in read.items():
        steps.begin(f"{name}: groups")
        jobs = Jobs(workload)
        measured[name] = TraceOutcomes(
            name,
            jobs,
            {number: jobs.grouping(number, range(count)) for number in COUNTS},
            {kind: [quality[Task(name, kind, seed)] for seed in range(count)] for kind in KINDS},
            facts[name],
        )
    steps.end()
    return Song2005(measured, count)
