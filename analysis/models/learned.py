"""Fit a learned model of users to records: a forest that sorts pauses by what users noticed.

Each tree splits the recorded releases so that the distributions of pauses in its leaves differ as
much as possible: the criterion is the Brier score summed over :data:`STEPS`, a sum over thresholds
that approximates the continuous ranked probability score. A user in a simulation draws the recorded
pauses that share leaves with what it notices (quantile regression forests: Meinshausen, JMLR 7,
2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.agents.behaviours.when import BatchOrder, Reason
from hpcrowd.agents.learned.heldout import recorded_releases
from hpcrowd.agents.learned.mind import Noticed, rhythm_of
from hpcrowd.agents.learned.model import LearnedModel, made_choices, made_forest
from hpcrowd.agents.populations.population import add_users
from hpcrowd.agents.presets import PRESETS
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.curves import Floats, decades
from hpcrowd.analysis.results import versions
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError, TraceError, missing
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.trace import Trace, jobs_from_trace

#: Pauses, s; the trees distinguish how likely they are exceeded.
STEPS = (
    10, 30, 60, 120, 300, 600, 1200, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR,
    16 * HOUR, DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 60 * DAY,
)  # fmt: skip

#: Width of the last step, decades: from two months to the longest pauses of logs.
LAST_STEP = 0.6


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. All are our choice, by forecasts on KTH, HPC2N, LANL-CM5 and SDSC-DS."""

    trees: int = setting(30, "trees", "trees", least=1)
    leaf: int = setting(20, "fewest pauses in a leaf", "pauses", least=1)
    share: float = setting(0.4, "share of the features tried at each split", above=0, most=1)
    kept: int = setting(24, "most pauses kept in a leaf", "pauses", least=1)
    recent: float = setting(120.0, "days in which the weight of a pause halves", "days", above=0)
    prior: float = setting(20.0, "submissions that weigh as much as everybody's rhythm", above=0)
    pull: float = setting(0.5, "power of the user's own rhythm", least=0, most=1)
    own: float = setting(
        100.0, "latest pauses of a user that weigh as much as those of others", "pauses", above=0
    )
    most: int = setting(60_000, "most pauses of each log", "pauses", least=1)
    choice_trees: int = setting(10, "trees of choices", "trees", least=1)
    choice_leaf: int = setting(50, "fewest choices in a leaf", "choices", least=1)
    absence: int = setting(
        12 * HOUR, "from this on a pause is days and a time of day", "s", least=0
    )


#: Settings of a fit to several logs, whose model is to be small, such as the one that is shipped.
SEVERAL = Settings(trees=20, kept=16, most=10_000)


def fit_learned(
    records: Sequence[tuple[Work, Clock]],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    provenance: dict[str, Any] | None = None,
) -> LearnedModel:
    """Fit a model to records: the recorded work and local time of each log.

    The pauses of each record have the same weight in all; within one, later ones have more. The
    model says about its origin what ``provenance`` has, fit for JSON.

    Raises
    ------
    TraceError
        If no user submitted twice.
    QuantityError
        If scikit-learn is not installed.
    """
    settings = settings or Settings()
    common = np.mean([rhythm_of(work, clock) for work, clock in records], axis=0)
    common /= common.mean()
    generator = Streams(seed).generator("learned")
    pauses: list[_Examples] = []
    choices: list[_Examples] = []
    for work, clock in records:
        found = Noticed.of(work, clock, common, settings.prior)
        which = found.released
        if len(which):
            which = _chosen(found, which, settings, generator)
            lift = found.lift(common, settings.prior, which)
            columns = (found.releases.pause[which], found.wall[which] % DAY, lift)
            weight = _weight(found, which, settings)
            pauses.append(_Examples(found.features[which], weight, np.column_stack(columns)))
            # What was noticed after the submission before each decided what came next.
            waited = (found.releases.reason[which] == Reason.ENDED) & (
                found.releases.awaited[which] == which - 1
            )
            again = _alike(work, which)
            choices.append(
                _Examples(found.after[which - 1], weight, np.column_stack((waited, again)))
            )
    if not pauses:
        raise TraceError("learned: no user submitted twice, so there is no pause to learn from")
    examples = _Examples.together(pauses)
    pause, released, lift = examples.outcome.T
    leaves = _Leaves(settings.kept, decades(pause), examples.weight, generator)
    grown = _grown(
        examples.features, _steps(pause), examples.weight, settings.trees, settings.leaf,
        settings.share, seed, leaves,
    )  # fmt: skip
    used, members = np.unique(np.concatenate(leaves.members), return_inverse=True)
    forest = made_forest(
        **grown, size=np.concatenate(leaves.size), members=members, pause=pause[used],
        released=released[used], lift=lift[used], common=common, prior=settings.prior,
        own=settings.own, pull=settings.pull, absence=settings.absence,
    )  # fmt: skip
    examples = _Examples.together(choices)
    means = _Means(examples.outcome, examples.weight)
    grown = _grown(
        examples.features, examples.outcome, examples.weight, settings.choice_trees,
        settings.choice_leaf, settings.share, seed, means,
    )  # fmt: skip
    waits, again = np.concatenate(means.values).T
    return LearnedModel(forest, made_choices(**grown, waits=waits, again=again), provenance or {})


def fit_traces(
    traces: Iterable[Trace],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    progress: Callable[[str, int], Any] | None = None,
) -> LearnedModel:
    """Fit a learned model to traces; one without waits gets those of a simulation.

    Each trace is read when its turn comes. ``progress`` is called with a label and the number of
    traces that are done.

    Raises
    ------
    TraceError
        If no user submitted twice, or a trace cannot be used.
    """
    settings, records, logs = settings or Settings(), [], []
    for done, trace in enumerate(traces):
        name = Path(trace.source).name
        if progress is not None:
            progress(f"sessions of {name}", done)
        jobs, note = with_waits(jobs_from_trace(trace).jobs, trace["wait"], trace.processors)
        work = Work.of(jobs)
        records.append((work, Clock.of(trace.header)))
        logs.append(
            {
                "name": name,
                "sha256": trace.sha256,
                "users": len(work.sessions.users),
                "pauses": int((recorded_releases(BatchOrder(work)).reason != Reason.START).sum()),
                "note": note,
            }
        )
    if progress is not None:
        progress("growing trees", len(records))
    about = {"logs": logs, "settings": asdict(settings), "seed": seed, "versions": versions()}
    return fit_learned(records, settings, seed=seed, provenance=about)


def with_waits(
    jobs: JobTable, recorded: ArrayLike, processors: int, scheduler: str = "easy"
) -> tuple[JobTable, str]:
    """Return the jobs of a trace with starts and ends, and a note if they had to be simulated.

    A log without waits does not say when jobs ended, and so not how long users thought. Starts are
    then those of a simulation of the recorded submissions. Recorded waits (s) below 0 are unknown.
    """
    if (np.asarray(recorded) >= 0).any():
        return jobs, ""
    run = jobs.copy()
    simulation = Simulation(run, max(processors, int(run.processors.max())), scheduler)
    add_users(simulation, Work.of(run), PRESETS["rigid"])
    simulation.run()
    again = jobs.copy()
    ran = run.start != UNKNOWN
    again.recorded_start[:] = np.where(ran, run.start, run.recorded_submit)
    again.recorded_end[:] = np.where(ran, run.end, run.recorded_submit)
    return again, f"the log has no waits: those of a simulation with {scheduler} take their place"


@dataclass(frozen=True)
class _Examples:
    """What users noticed, how much that counts, and what they did, all a row for each."""

    features: Floats
    weight: Floats
    outcome: Floats

    @classmethod
    def together(cls, parts: Sequence[_Examples]) -> _Examples:
        """Return those of all records, each of the same weight in all."""
        weight = np.concatenate([one.weight / one.weight.sum() for one in parts])
        return cls(
            np.concatenate([one.features for one in parts]),
            weight / weight.mean(),
            np.concatenate([one.outcome.astype(float) for one in parts]),
        )


def _weight(found: Noticed, which: Int64s, settings: Settings) -> Floats:
    age = (found.releases.at[found.released].max() - found.releases.at[which]) / DAY
    return 0.5 ** (age / settings.recent)


def _chosen(
    found: Noticed, which: Int64s, settings: Settings, generator: np.random.Generator
) -> Int64s:
    """Return at most as many units as settings allow, later ones with a higher chance."""
    if len(which) <= settings.most:
        return which
    # The largest keys are a weighted sample without replacement: Efraimidis and Spirakis,
    # Information Processing Letters 97, 2006.
    keys = np.log(generator.random(len(which))) / _weight(found, which, settings)
    return np.sort(which[np.argpartition(-keys, settings.most)[: settings.most]])


def _alike(work: Work, which: Int64s) -> NDArray[np.bool_]:
    """Return which units have as many jobs as the one before, and their sizes and requests."""
    units, jobs = work.by_batch, work.jobs
    first = units.rows[units.first[:-1]]
    count = np.diff(units.first)
    same: NDArray[np.bool_] = count[which] == count[which - 1]
    for column in (jobs.processors, jobs.requested_time):
        same &= column[first[which]] == column[first[which - 1]]
    return same


def _steps(pause: Floats) -> Floats:
    """Return which of :data:`STEPS` each pause exceeds, times the root of the width of the step."""
    at = decades(np.array(STEPS))
    widths = np.diff(np.concatenate([[0.0], (at[1:] + at[:-1]) / 2, [at[-1] + LAST_STEP / 2]]))
    exceeded = (decades(pause)[:, None] > at).astype(float)
    return exceeded * np.sqrt(widths)


def _grown(
    features: Floats,
    target: Floats,
    weight: Floats,
    trees: int,
    leaf: int,
    share: float,
    seed: int,
    ends: _Leaves | _Means,
) -> dict[str, NDArray[Any]]:
    """Grow trees that distinguish targets, and let ``ends`` fill the leaves."""
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ModuleNotFoundError:
        raise QuantityError(f"learned users: {missing('scikit-learn')}") from None

    X = features.astype(np.float32)
    grown = RandomForestRegressor(
        trees, min_samples_leaf=leaf, max_features=share, random_state=seed, n_jobs=1
    ).fit(X, target.astype(np.float32), sample_weight=weight)
    leaves = grown.apply(X)
    root, feature, threshold, child = [], [], [], []
    offset = 0
    for number, tree in enumerate(grown.estimators_):
        old, first_child = _renumbered(tree.tree_)
        root.append(offset)
        feature.append(tree.tree_.feature[old].clip(-1))
        threshold.append(tree.tree_.threshold[old])
        inner = first_child >= 0
        first_child[inner] += offset
        order = np.argsort(leaves[:, number], kind="stable")
        sorted_leaves = leaves[order, number]
        ends.begin(len(old))
        for place in np.flatnonzero(~inner).tolist():
            low, high = np.searchsorted(sorted_leaves, (old[place], old[place] + 1))
            first_child[place] = ends.leaf(place, order[low:high])
        child.append(first_child)
        offset += len(old)
    return {
        "root": np.array(root),
        "feature": np.concatenate(feature),
        "threshold": np.concatenate(threshold),
        "child": np.concatenate(child),
    }


class _Leaves:
    """Leaves that hold examples."""

    def __init__(
        self, kept: int, value: Floats, weight: Floats, generator: np.random.Generator
    ) -> None:
        self.members: list[Int64s] = []
        self.size: list[Int64s] = []
        self._kept, self._value, self._weight = kept, value, weight
        self._generator = generator
        self._count = 0

    def begin(self, nodes: int) -> None:
        """Begin a tree."""
        self.size.append(np.zeros(nodes, np.int64))

    def leaf(self, node: int, rows: Int64s) -> int:
        """Fill a leaf, and return where its examples begin."""
        chosen = rows[_spread(self._value[rows], self._weight[rows], self._kept, self._generator)]
        self.members.append(chosen)
        self.size[-1][node] = len(chosen)
        self._count += len(chosen)
        return self._count - len(chosen)


class _Means:
    """Leaves that hold means."""

    def __init__(self, outcome: Floats, weight: Floats) -> None:
        self.values: list[Floats] = []
        self._outcome, self._weight = outcome, weight

    def begin(self, nodes: int) -> None:
        """Begin a tree."""
        self.values.append(np.zeros((nodes, self._outcome.shape[1])))

    def leaf(self, node: int, rows: Int64s) -> int:
        """Fill a leaf; it has no examples."""
        weight = self._weight[rows]
        self.values[-1][node] = weight @ self._outcome[rows] / weight.sum()
        return -1


def _renumbered(tree: Any) -> tuple[Int64s, Int64s]:
    """Return the old numbers and the first child of nodes, whose two children are side by side."""
    old, child = [0], [-1]
    place = 0
    while place < len(old):
        left, right = tree.children_left[old[place]], tree.children_right[old[place]]
        if left >= 0:
            child[place] = len(old)
            old += [left, right]
            child += [-1, -1]
        place += 1
    return np.array(old), np.array(child)


def _spread(y: Floats, w: Floats, kept: int, generator: np.random.Generator) -> Int64s:
    """Return which values to keep: as many as ``kept``, spread evenly over their distribution.

    Each is one of equal shares of the weight, so all count alike afterwards.
    """
    order = np.argsort(y, kind="stable")
    upto = np.cumsum(w[order])
    shares = (np.arange(kept) + generator.random(kept)) / kept * upto[-1]
    found: Int64s = order[np.minimum(np.searchsorted(upto, shares), len(y) - 1)]
    return found
