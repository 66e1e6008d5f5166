from .bags import Bags
from .catalogue import FEATURES, GROUPS
from .distance import Distance, distance_of
from .feature import Feature, Features, Group, Value, measure
from .report import features_html
from .series import autocorrelation, ccdf, cdf, counts, interarrivals, moments, rates
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
    "Value",
    "Workload",
    "autocorrelation",
    "ccdf",
    "cdf",
    "counts",
    "distance_of",
    "features_html",
    "format_value",
    "interarrivals",
    "measure",
    "measure_all",
    "moments",
    "rates",
    "read_workload",
    "stats_json",
]
