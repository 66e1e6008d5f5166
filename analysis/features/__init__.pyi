from .bags import Bags
from .catalogue import FEATURES, GROUPS, feature_named
from .distance import Distance, distance_of
from .feature import Feature, Features, Group, Unavailable, Value, measure
from .stats import measure_all, read_workload, stats_json
from .workload import Settings, Workload

__all__ = [
    "FEATURES",
    "GROUPS",
    "Bags",
    "Distance",
    "Feature",
    "Features",
    "Group",
    "Settings",
    "Unavailable",
    "Value",
    "Workload",
    "distance_of",
    "feature_named",
    "measure",
    "measure_all",
    "read_workload",
    "stats_json",
]
