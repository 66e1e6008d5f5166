"""Comparison of runs in numbers: :func:`compare` and its tables.

Runs that differ only in their seed form one group; runs of the same work have the same users. All
groups are compared with the first. All intervals have 95 % confidence, see
:mod:`hpcrowd.analysis.paired`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.accounts.nodes import partitions_in
from hpcrowd.analysis.comparison.given_up import (
    WORDS,
    any_given_up,
    given_up_in,
    given_up_in_both,
)
from hpcrowd.analysis.metrics import (
    METRICS,
    OTHER_WORDS,
    PER_USER,
    Metric,
    format_metric,
    per_user,
    words_of,
)
from hpcrowd.analysis.paired import (
    CONFIDENCE,
    Difference,
    Estimate,
    UserDifference,
    mean_by_user,
    seed_difference,
    t_interval,
    user_difference,
)
from hpcrowd.analysis.results import provenance, read_run
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Int64s, State
from hpcrowd.environment.output.guard import checksum_of_values
from hpcrowd.environment.quantities import MOST_SHOWN, notebook_table, plural

if TYPE_CHECKING:
    import pandas as pd


#: Settings that, with the seed, determine the users of a resampled population.
DRAWN_BY = (
    "files_sha256", "pool", "sessions", "unit", "days", "population", "user_arrivals", "full",
)  # fmt: skip

#: Every metric of a comparison, in order: those of a run, and one more.
ALL_METRICS = (
    *METRICS,
    Metric(
        "week_distance",
        OTHER_WORDS["week_distance"],
        "distance between simulated and recorded weekly profiles of submissions, 0 to 1",
    ),
)


@dataclass
class Group:
    """One run, or several that differ only in their seed."""

    label: str  #: name in tables and pictures
    runs: list[Run]  #: at least one
    #: Recorded submissions of the work, s; None if unknown. Jobs of users who generate their work
    #: do not have them.
    record: Int64s | None = None

    def __post_init__(self) -> None:
        if self.record is None:
            self.record = recorded(self.first)

    def __repr__(self) -> str:
        return f"<Group {self.title}>"

    @property
    def first(self) -> Run:
        """The first run."""
        return self.runs[0]

    @property
    def title(self) -> str:
        """The label, with the number of seeds if more than one."""
        return self.label + (f", {len(self.runs)} seeds" if len(self.runs) > 1 else "")

    @property
    def seeds(self) -> list[int | None]:
        """The seed of each run; None for a run without one."""
        return [seed_of(run) for run in self.runs]

    @cached_property
    def values(self) -> dict[str, list[float | None]]:
        """The value of each metric in each run."""
        found: dict[str, list[float | None]] = {
            metric.name: [run.metrics[metric.name] for run in self.runs] for metric in METRICS
        }
        return found | {"week_distance": [week_distance(run, self.record) for run in self.runs]}

    def by_seed(self, metric: str) -> dict[int | None, float]:
        """Return the value of a metric by seed, for the runs that have it."""
        pairs = zip(self.seeds, self.values[metric], strict=True)
        return {seed: float(value) for seed, value in pairs if value is not None}

    def estimate(self, metric: str) -> Estimate | None:
        """Return the mean of a metric over the runs, with its interval; None if no run has it."""
        values = list(self.by_seed(metric).values())
        return t_interval(values) if values else None

    def partition_wait(self, cluster: str, partition: str) -> Estimate | None:
        """Return the mean wait in a partition of a machine of nodes, s; None if no job ran in it.

        Runs are averaged, with the interval of :func:`~hpcrowd.analysis.paired.t_interval`.
        """
        found = [
            run.parts["nodes"].account.get(cluster, {}).get("partitions", {}) for run in self.runs
        ]
        waits = [one[partition]["wait_mean_s"] for one in found if partition in one]
        values = [float(wait) for wait in waits if wait is not None]
        return t_interval(values) if values else None

    @cached_property
    def users(self) -> dict[str, tuple[Int64s, curves.Floats]]:
        """User numbers and values of each per-user metric, averaged over the runs."""
        found = [per_user(run.jobs) for run in self.runs]
        return {name: mean_by_user([one[name] for one in found]) for name in found[0]}


def seed_of(run: Run) -> int | None:
    """Return the seed of a run, None if its configuration has none."""
    seed = run.configuration.get("seed")
    return None if seed is None else int(seed)


def week_distance(run: Run, record: Int64s | None) -> float | None:
    """Return :func:`~hpcrowd.analysis.curves.profile_distance` to a record; None without one."""
    if record is None:
        return None
    profiles = [curves.weekly_profile(times, run.clock) for times in (run.jobs.submit, record)]
    return (
        curves.profile_distance(*profiles) if all(profile.any() for profile in profiles) else None
    )


def recorded(run: Run) -> Int64s | None:
    """Return the recorded submissions of a run's work, s; None if it has none."""
    submit = run.jobs.recorded_submit
    if (submit != UNKNOWN).any():
        return submit
    return None if run.reading.trace is None else run.reading.trace["submit"].astype(np.int64)


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Group runs that differ only in their seed, in the order of their first runs.

    Runs of the same work whose configurations differ only in ``seed`` form one group. A group has
    each seed once: the same run given twice makes two groups.
    """
    found: dict[str, list[Group]] = {}
    groups: list[Group] = []
    for run in runs:
        configuration = {key: v for key, v in run.configuration.items() if key != "seed"}
        key = json.dumps([work_of(run), configuration], sort_keys=True, default=str)
        alike = found.setdefault(key, [])
        seed = seed_of(run)
        for group in alike:
            if seed is not None and seed not in group.seeds:
                group.runs.append(run)
                break
        else:
            group = Group(run.label, [run])
            alike.append(group)
            groups.append(group)
    for group in groups:
        if len(group.runs) > 1:
            words = group.label.split(", ")
            group.label = ", ".join(word for word in words if not word.startswith("seed "))
    _tell_apart(groups)
    # A group without a record gets the one of another group of the same work.
    known = {work_of(group.first): group.record for group in groups if group.record is not None}
    for group in groups:
        if group.record is None:
            group.record = known.get(work_of(group.first))
    return groups


def _tell_apart(groups: Sequence[Group]) -> None:
    """Make equal labels distinct: add the trace, or else a number."""
    for add in (
        lambda group, _: named_work(group.first, "generated"),
        lambda _, number: str(number),
    ):
        labels = [group.label for group in groups]
        for label in set(labels):
            same = [group for group in groups if group.label == label]
            texts = [add(group, number) for number, group in enumerate(same, 1)]
            if len(set(texts)) > 1:
                for group, text in zip(same, texts, strict=True):
                    group.label = f"{label} ({text})"


def work_of(run: Run) -> str:
    """Return an identifier of a run's work; runs with equal ones may be paired by user number.

    It is the checksum of the trace, or of its jobs if the trace came from no file; for generated
    users the checksum of their numbers and groups; for resampled users what they are drawn from and
    how.
    """
    source = run.reading.source
    if source and source["sha256"]:
        return source["sha256"]
    jobs = run.jobs
    if run.configuration.get("kind") == "resample":
        drawn = {name: run.configuration.get(name) for name in DRAWN_BY}
        return checksum_of_values(drawn)
    if source:
        parts: tuple[Any, ...] = (jobs.number, jobs.user, jobs.recorded_submit)
    else:
        parts = (np.unique(np.stack([jobs.user, jobs.group]), axis=1),)
    kind = "trace" if source else f"generated {run.configuration.get('kind')}"
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


#: The metric with a currency.
PRICE = "energy_cost"

#: Columns of :attr:`Comparison.metrics`, of ``differences`` and of ``users``.
METRIC_COLUMNS = ("mean", "low", "high", "runs")
DIFFERENCE_COLUMNS = ("difference", "relative", "low", "high", "by")
_USERS = "users first other difference low high median better worse only_first only_other"
USER_COLUMNS = tuple(_USERS.split())


@dataclass
class Comparison:
    """A comparison of runs, each group with the first.

    Attributes
    ----------
    groups
        The runs; those that differ only in their seed are one group.
    seed
        Seed of the bootstrap over users.
    """

    groups: list[Group]
    seed: int = 0

    def __repr__(self) -> str:
        return f"<Comparison of {'; '.join(group.label for group in self.groups)}>"

    def _repr_html_(self) -> str:
        """Return the means of all groups, for notebooks."""
        rows = [
            (
                words_of(name),
                "; ".join(
                    format_metric(name, None if one is None else one.mean)
                    for one in found[:MOST_SHOWN]
                ),
            )
            for name, found in self.estimates.items()
            if any(one is not None and one.mean for one in found)
        ]
        return notebook_table(repr(self), rows)

    @property
    def runs(self) -> list[Run]:
        """All runs, group by group."""
        return [run for group in self.groups for run in group.runs]

    @cached_property
    def paired(self) -> list[bool]:
        """Whether each group has the same work, and so the same users, as the first."""
        first = work_of(self.groups[0].first)
        return [work_of(group.first) == first for group in self.groups]

    @cached_property
    def estimates(self) -> dict[str, list[Estimate | None]]:
        """The mean of each metric in each group; None where no run has it."""
        return {m.name: [group.estimate(m.name) for group in self.groups] for m in ALL_METRICS}

    @cached_property
    def seed_differences(self) -> dict[str, list[Difference | None]]:
        """The difference of each later group to the first, by metric.

        None if either lacks the metric, or if it is a price in another currency.
        """
        first, *others = self.groups

        def difference(name: str, group: Group) -> Difference | None:
            if name == PRICE and len({currency_of(first), currency_of(group)}) > 1:
                return None
            a, b = first.by_seed(name), group.by_seed(name)
            return seed_difference(a, b) if a and b else None

        return {m.name: [difference(m.name, group) for group in others] for m in ALL_METRICS}

    @cached_property
    def user_differences(self) -> dict[str, list[UserDifference | None]]:
        """The difference, user by user, of each later group to the first, by metric.

        None if the work differs or no user has the metric on both sides.
        """
        first = self.groups[0]
        return {
            name: [
                user_difference(first.users[name], group.users[name], self.seed) if paired else None
                for group, paired in zip(self.groups[1:], self.paired[1:], strict=True)
            ]
            for name in PER_USER
        }

    @cached_property
    def partition_waits(self) -> dict[str, list[Estimate | None]]:
        """The mean wait in each partition of machines of nodes, by group, s; None without jobs."""
        names = partitions_in(run.parts["nodes"].account for run in self.runs)
        return {
            name if len({cluster for cluster, _ in names}) == 1 else f"{cluster}/{name}": [
                group.partition_wait(cluster, name) for group in self.groups
            ]
            for cluster, name in names
        }

    @cached_property
    def given_up(self) -> dict[str, list[Estimate | None]]:
        """What users gave up in the queue, by group; see :mod:`.given_up`. Empty if nothing was.

        Runs are paired with those of the first group by seed, if both have it.
        """
        if not any_given_up(self.runs):
            return {}
        first = self.groups[0]
        by_seed = dict(zip(reversed(first.seeds), reversed(first.runs), strict=True))

        def of(group: Group, paired: bool) -> list[dict[str, float]]:
            return [
                given_up_in(run)
                | (given_up_in_both(by_seed.get(seed, first.first), run) if paired else {})
                for seed, run in zip(group.seeds, group.runs, strict=True)
            ]

        found = [
            of(group, paired and group is not first)
            for group, paired in zip(self.groups, self.paired, strict=True)
        ]
        return {
            name: [
                t_interval([run[name] for run in runs]) if name in runs[0] else None
                for runs in found
            ]
            for name in WORDS
        }

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Rows (metric, group): ``mean`` over seeds, ``low``, ``high``, ``runs``."""
        return _frame(self.groups, self.estimates, _estimate, METRIC_COLUMNS)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Rows (metric, group): ``difference`` to the first group, ``relative``, interval, ``by``.

        ``low`` and ``high`` bound the difference; ``by`` is the kind of interval, see
        :class:`~hpcrowd.analysis.paired.Difference`.
        """
        return _frame(self.groups[1:], self.seed_differences, _difference, DIFFERENCE_COLUMNS)

    @cached_property
    def users(self) -> pd.DataFrame:
        """Rows (metric, group): users compared with the first group, see
        :class:`~hpcrowd.analysis.paired.UserDifference`. Groups with different work are left out.
        """
        return _frame(self.groups[1:], self.user_differences, _users, USER_COLUMNS)

    def per_user(self, metric: str) -> pd.DataFrame:
        """Return a metric by user (rows) and group (columns); NaN where a user lacks it.

        Raises
        ------
        QuantityError
            When the metric is not available per user, or the groups do not have the same work.
        """
        import pandas as pd

        if metric not in PER_USER:
            raise QuantityError(
                f"metric {metric!r}: not available per user; choose {', '.join(PER_USER)}"
            )
        if not all(self.paired):
            other = self.groups[self.paired.index(False)].label
            raise QuantityError(
                f"{other}: not the same work as {self.groups[0].label}; users of different traces "
                "are not paired"
            )
        columns = {
            group.label: pd.Series(group.users[metric][1], group.users[metric][0])
            for group in self.groups
        }
        return pd.DataFrame(columns).sort_index().rename_axis("user")

    @cached_property
    def notes(self) -> list[str]:
        """Remarks for the reader of the numbers, in sentences."""
        return [*self._of_work(), *self._of_jobs(), *self._of_prices(), *self._of_versions()]

    def _of_work(self) -> list[str]:
        first = self.groups[0]
        found = []
        for group, paired in zip(self.groups, self.paired, strict=True):
            if not paired:
                found.append(
                    f"{group.label} uses {named_work(group.first)}, {first.label} uses "
                    f"{named_work(first.first)}: users are not paired."
                )
                continue
            count, expected = len(group.first.jobs), len(first.first.jobs)
            if count != expected and group.first.reading.source:
                found.append(
                    f"{group.label} has {plural(count, 'job')}, {first.label} has {expected:,}: "
                    "they are not the same jobs."
                )
        return found

    def _of_jobs(self) -> list[str]:
        found: dict[str, list[str]] = {}
        for group in self.groups:
            for told in jobs_left_out(group):
                found.setdefault(told, []).append(group.label)
        names = {told: labels for told, labels in found.items() if len(labels) < len(self.groups)}
        return [
            f"{'; '.join(names[told]) if told in names else 'In all'}: {told}." for told in found
        ]

    def _of_prices(self) -> list[str]:
        found = {group.label: one for group in self.groups if (one := currency_of(group))}
        if len(set(found.values())) < 2:
            return []
        each = ", ".join(f"{label} in {one}" for label, one in found.items())
        return [f"Prices are in different currencies, so they are not subtracted: {each}."]

    def _of_versions(self) -> list[str]:
        made = [provenance(run)["versions"].get("hpcrowd") for run in self.runs]
        if len(set(made)) < 2:
            return []
        return [
            "The runs were made by different versions of hpcrowd: "
            + ", ".join(dict.fromkeys(str(version) for version in made))
            + "."
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the whole comparison, fit for JSON."""
        others = self.groups[1:]
        return {
            "confidence": CONFIDENCE,
            "groups": [
                {
                    "label": group.label,
                    "work": named_work(group.first),
                    "users_paired": paired,
                    "runs": [
                        {
                            "label": run.label,
                            "seed": seed_of(run),
                            "processors": run.processors,
                            "jobs": len(run.jobs),
                            "trace": run.reading.source,
                        }
                        for run in group.runs
                    ],
                    "metrics": {
                        name: _estimate(estimates[place])
                        for name, estimates in self.estimates.items()
                    },
                    "partition_waits_s": {
                        name: _estimate(waits[place])
                        for name, waits in self.partition_waits.items()
                    },
                    **(
                        {"given_up": {n: _estimate(of[place]) for n, of in self.given_up.items()}}
                        if self.given_up
                        else {}
                    ),
                }
                for place, (group, paired) in enumerate(zip(self.groups, self.paired, strict=True))
            ],
            "differences": [
                {
                    "group": group.label,
                    "first": self.groups[0].label,
                    "metrics": {
                        name: _difference(differences[place])
                        for name, differences in self.seed_differences.items()
                    },
                    "users": {
                        name: _users(differences[place])
                        for name, differences in self.user_differences.items()
                    },
                }
                for place, group in enumerate(others)
            ],
            "notes": self.notes,
        }


#: A run, or where it is.
OneRun = Run | str | os.PathLike[str]


def compare(*runs: OneRun | Sequence[OneRun], seed: int = 0) -> Comparison:
    """Compare two or more runs.

    Parameters
    ----------
    runs
        Runs, folders of results or recorded traces, or one list of them; the others are compared
        with the first. Runs whose configurations differ only in the seed become one group.
    seed
        Seed of the bootstrap over users.

    Returns
    -------
    Comparison
        It has the frames ``metrics``, ``differences`` and ``users``.

    Raises
    ------
    HpcrowdError
        When there are fewer than two runs, or one cannot be read.

    Examples
    --------
    >>> compare("runs/rigid")
    Traceback (most recent call last):
    ...
    hpcrowd.environment.errors.QuantityError: 1 run: nothing to compare it with; give two or more
    """
    given: list[OneRun] = []
    for one in runs:
        given += one if isinstance(one, list | tuple) else [one]  # type: ignore[list-item]
    if len(given) < 2:
        raise QuantityError(
            f"{plural(len(given), 'run')}: nothing to compare it with; give two or more"
        )
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    return Comparison(group_runs(read), seed)


def currency_of(group: Group) -> str:
    """Return the currency of the prices of a group's runs; empty without prices."""
    return str(group.first.parts["power"].account.get("currency", ""))


def named_work(run: Run, without: str = "generated users") -> str:
    """Return the name of a run's trace, or what it is without one."""
    source = run.reading.source
    return source["source"] if source else without


def jobs_left_out(group: Group) -> list[str]:
    """Return which jobs were dropped or repaired when the trace was read, or had not finished."""
    found = [line.replace(": ", ", ", 1) for line in group.first.reading.counted]
    left = [run.jobs.state == State.UNFINISHED for run in group.runs]
    jobs = sum(int(np.count_nonzero(one)) for one in left)
    if jobs:
        owners = [run.jobs.user[one] for run, one in zip(group.runs, left, strict=True)]
        users = plural(len(np.unique(np.concatenate(owners))), "user")
        found.append(f"{plural(jobs, 'job')} of {users} unfinished, not counted in waits")
    return found


def _frame[T](
    groups: Sequence[Group],
    found: Mapping[str, Sequence[T | None]],
    cells_of: Callable[[T | None], dict[str, Any] | None],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Return the findings as rows (metric, group); those without cells are left out."""
    import pandas as pd

    rows = [
        {"metric": name, "group": group.label, **cells}
        for name, values in found.items()
        for group, one in zip(groups, values, strict=True)
        if (cells := cells_of(one)) is not None
    ]
    frame = pd.DataFrame(rows, columns=["metric", "group", *columns])
    unknown = [name for name in columns if frame[name].isna().any()]
    return frame.astype(dict.fromkeys(unknown, float)).set_index(["metric", "group"])


def _estimate(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict(zip(METRIC_COLUMNS, (None, None, None, 0), strict=True))
    values = (estimate.mean, estimate.low, estimate.high, estimate.count)
    return dict(zip(METRIC_COLUMNS, values, strict=True))


def _difference(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return dict(zip(DIFFERENCE_COLUMNS, (None, None, None, None, ""), strict=True))
    estimate = difference.estimate
    values = (estimate.mean, difference.relative, estimate.low, estimate.high, difference.by)
    return dict(zip(DIFFERENCE_COLUMNS, values, strict=True))


def _users(found: UserDifference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    estimate = found.estimate
    values = (estimate.count, found.first, found.other, estimate.mean, estimate.low, estimate.high)
    shares = (found.median, found.better, found.worse, found.only_first, found.only_other)
    return dict(zip(USER_COLUMNS, (*values, *shares), strict=True))


class Measures(NamedTuple):
    """A run compared with the record; lengths are ratios to the recorded ones (1: as recorded)."""

    wait_mean_s: float  #: mean wait of the jobs that ran, s
    makespan_s: float  #: from the first submission to the last end, s
    lateness_mean_s: float  #: mean of simulated minus recorded submission, s
    profile_distance: float  #: between weekly profiles of submissions, 0 (equal) to 1
    unevenness: float  #: of the weekly profile, 0 (flat) to 1
    activity_p50: float  #: median over users of the activity length, as a ratio
    activity_p90: float  #: 90th percentile of the same


def measure(run: Run) -> Measures:
    """Return the measures of a run that replays a trace.

    Users who submitted all their recorded jobs in the same second have no activity length and are
    left out of the last two.
    """
    jobs = run.jobs
    simulated = curves.weekly_profile(jobs.submit, run.clock)
    recorded = curves.weekly_profile(jobs.recorded_submit, run.clock)
    before = curves.activity_lengths(jobs.user, jobs.recorded_submit)
    after = curves.activity_lengths(jobs.user, jobs.submit)
    ratio = after[before > 0] / before[before > 0]
    return Measures(
        wait_mean_s=run.metrics["wait_mean_s"],
        makespan_s=run.metrics["makespan_s"],
        lateness_mean_s=run.metrics["lateness_mean_s"],
        profile_distance=curves.profile_distance(simulated, recorded),
        unevenness=curves.unevenness(simulated),
        activity_p50=float(np.percentile(ratio, 50)),
        activity_p90=float(np.percentile(ratio, 90)),
    )
