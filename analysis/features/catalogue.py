"""All features, in the groups they are shown in."""

from __future__ import annotations

from analysis.features import arrivals, bag_features, repetition, sizes, users
from analysis.features.feature import Feature, Group

#: All groups, in the order they are shown in.
GROUPS: tuple[Group, ...] = (
    arrivals.GROUP,
    sizes.GROUP,
    repetition.GROUP,
    bag_features.GROUP,
    users.GROUP,
)

#: All features by name.
FEATURES: dict[str, Feature] = {
    feature.name: feature for group in GROUPS for feature in group.features
}
