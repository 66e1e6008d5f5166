from .bags import Bags, bags
from .feature import Feature, Features, Group, Unavailable, Value, measure
from .hurst import Hurst, hurst
from .workload import Settings, Workload

__all__ = [
    "Bags",
    "Feature",
    "Features",
    "Group",
    "Hurst",
    "Settings",
    "Unavailable",
    "Value",
    "Workload",
    "bags",
    "hurst",
    "measure",
]
