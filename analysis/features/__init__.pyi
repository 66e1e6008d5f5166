from .bags import Bags
from .distance import Distance, distance_of
from .feature import Feature, Features, Group, Value, measure
from .report import features_html, format_value
from .series import autocorrelation, ccdf, cdf, counts, interarrivals, moments, rates
from .stats import FEATURES, GROUPS, measure_all, read_workload, stats_json
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
