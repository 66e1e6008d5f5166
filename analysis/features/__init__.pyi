from .bags import Bags
from .catalogue import FEATURES, GROUPS, feature_named
from .distance import Distance, distance_of
from .feature import Feature, Features, Group, Unavailable, Value, measure
from .report import features_html
from .stats import measure_all, read_workload, stats_json
from .text import format_value
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
    "features_html",
    "format_value",
    "measure",
    "measure_all",
    "read_workload",
    "stats_json",
]
