"""Fit a learned model of users to records: a forest that sorts pauses by what users noticed.

Each tree splits the recorded releases so that the distributions of pauses in its leaves differ as
much as possible: the criterion is the Brier score summed over :data:`STEPS`, a sum over thresholds
that approximates the continuous ranked probability score. A user in a simulation draws the recorded
pauses that share leaves with what it notices (quantile regression forests: Meinshausen, JMLR 7,
2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.agents.learned.model import LearnedModel, made_forest
from hpcrowd.agents.learned.recorded import Noticed, rhythm_of
from hpcrowd.agents.work.recorded import Work
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.streams import Streams

Floats = NDArray[np.float64]

#: Pauses, s, whose probability to be exceeded the trees tell apart.
STEPS = (
    10, 30, 60, 120, 300, 600, 1200, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR,
    16 * HOUR, DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 60 * DAY,
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. All are our choice, by forecasts on KTH, HPC2N, LANL-CM5 and SDSC-DS."""

    trees: int = setting(30, "trees", "trees", least=1)
    leaf: int = setting(20, "fewest pauses in a leaf", "pauses", least=1)
    share: float = setting(0.4, "share of the features tried at each split", above=0, most=1)
    kept: int = setting(24, "most pauses kept in a leaf", "pauses", least=1)
    even: float = setting(0.5, "how much less a pause of a busy user weighs", least=0, most=1)
    even_leaves: float = setting(0.0, "the same, of the pauses in a leaf", least=0, most=1)
    recent: float = setting(0.0, "days in which the weight of a pause halves; 0 never", "days")
    prior: float = setting(20.0, "submissions that weigh as much as everybody's rhythm", above=0)
    pull: float = setting(0.5, "power of the user's own rhythm", least=0, most=1)
    absence: int = setting(4 * HOUR, "from this on a pause is days and a time of day", "s", least=0)


def fit_learned(
    records: Sequence[tuple[Work, Clock]],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    provenance: dict[str, Any] | None = None,
) -> LearnedModel:
    """Fit a model to records.

    A user's weight is the square root of its number of pauses, so that a few busy users do not
    decide alone; each record has the same weight.
    """
    from sklearn.ensemble import RandomForestRegressor

    settings = settings or Settings()
    common = np.mean([rhythm_of(work, clock) for work, clock in records], axis=0)
    common /= common.mean()
    rows: dict[str, list[Any]] = {name: [] for name in ("X", "w", "v", "pause", "released", "lift")}
    for work, clock in records:
        found = Noticed.of(work, clock, common, settings.prior)
        which = found.released
        if not len(which):
            continue
        count = np.bincount(found.user[which])[found.user[which]]
        age = found.releases.at[which].max() - found.releases.at[which]
        new = 0.5 ** (age / DAY / settings.recent) if settings.recent else np.ones(len(which))
        weight, inside = new * count**-settings.even, new * count**-settings.even_leaves
        rows["X"].append(found.features[which])
        rows["w"].append(weight / weight.sum())
        rows["v"].append(inside / inside.sum())
        rows["pause"].append(found.releases.pause[which])
        rows["released"].append(found.wall[which] % DAY)
        rows["lift"].append(found.lift(common, settings.prior, which))
    if not rows["X"]:
        raise TraceError("learned: no user submitted twice, so there is no pause to learn from")
    X, w, v, pause, released, lift = (np.concatenate(rows[name]) for name in rows)
    w /= w.mean()
    y = np.log10(1 + pause / 60)
    at = np.log10(1 + np.array(STEPS) / 60)
    widths = np.diff(np.concatenate([[0.0], (at[1:] + at[:-1]) / 2, [at[-1] + 0.3]]))
    target = ((y[:, None] > at) * np.sqrt(widths)).astype(np.float32)
    grown = RandomForestRegressor(
        settings.trees, min_samples_leaf=settings.leaf, max_features=settings.share,
        random_state=seed, n_jobs=1,
    ).fit(X.astype(np.float32), target, sample_weight=w)  # fmt: skip
    leaves = grown.apply(X.astype(np.float32))
    generator = Streams(seed).generator("learned")
    root, feature, threshold, child, size, members = [], [], [], [], [], []
    offset = entries = 0
    for number, tree in enumerate(grown.estimators_):
        nodes = _renumbered(tree.tree_)
        order = np.argsort(leaves[:, number], kind="stable")
        sorted_leaves = leaves[order, number]
        root.append(offset)
        feature.append(tree.tree_.feature[nodes.old].clip(-1))
        threshold.append(tree.tree_.threshold[nodes.old])
        first_child = nodes.child.copy()
        inner = first_child >= 0
        first_child[inner] += offset
        sizes = np.zeros(len(nodes.old), np.int64)
        for place in np.flatnonzero(~inner):
            low, high = np.searchsorted(sorted_leaves, (nodes.old[place], nodes.old[place] + 1))
            there = order[low:high]
            chosen = there[_spread(y[there], v[there], settings.kept, generator)]
            first_child[place], sizes[place] = entries, len(chosen)
            members.append(chosen)
            entries += len(chosen)
        child.append(first_child)
        size.append(sizes)
        offset += len(nodes.old)
    used, members_used = np.unique(np.concatenate(members), return_inverse=True)
    forest = made_forest(
        root=np.array(root), feature=np.concatenate(feature), threshold=np.concatenate(threshold),
        child=np.concatenate(child), size=np.concatenate(size), members=members_used,
        pause=pause[used], released=released[used], lift=lift[used], common=common,
        prior=settings.prior, pull=settings.pull, absence=settings.absence,
    )  # fmt: skip
    return LearnedModel(forest, provenance or {})


@dataclass(frozen=True)
class _Nodes:
    """Nodes of a tree so numbered that the two children of a node stand side by side."""

    old: NDArray[np.int64]
    child: NDArray[np.int64]


def _renumbered(tree: Any) -> _Nodes:
    old, child = [0], [-1]
    place = 0
    while place < len(old):
        left, right = tree.children_left[old[place]], tree.children_right[old[place]]
        if left >= 0:
            child[place] = len(old)
            old += [left, right]
            child += [-1, -1]
        place += 1
    return _Nodes(np.array(old), np.array(child))


def _spread(y: Floats, w: Floats, kept: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return which values to keep: as many as ``kept``, spread evenly over their distribution.

    Each is one of equal shares of the weight, so all count alike afterwards.
    """
    order = np.argsort(y, kind="stable")
    upto = np.cumsum(w[order])
    shares = (np.arange(kept) + generator.random(kept)) / kept * upto[-1]
    return order[np.minimum(np.searchsorted(upto, shares), len(y) - 1)]
