"""Features of workloads: their groups, distances and reports."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.features.bags import Bags as Bags
    from .analysis.features.feature import Feature as Feature
    from .analysis.features.feature import Features as Features
    from .analysis.features.feature import Value as Value
    from .analysis.features.feature import measure as measure
    from .analysis.features.report import features_html as features_html
    from .analysis.features.report import format_value as format_value
    from .analysis.features.series import autocorrelation as autocorrelation
    from .analysis.features.series import ccdf as ccdf
    from .analysis.features.series import cdf as cdf
    from .analysis.features.series import counts as counts
    from .analysis.features.series import interarrivals as interarrivals
    from .analysis.features.series import moments as moments
    from .analysis.features.series import rates as rates
    from .analysis.features.stats import FEATURES as FEATURES
    from .analysis.features.stats import GROUPS as GROUPS
    from .analysis.features.stats import Distance as Distance
    from .analysis.features.stats import distance_of as distance_of
    from .analysis.features.stats import measure_all as measure_all
    from .analysis.features.stats import read_workload as read_workload
    from .analysis.features.stats import stats_json as stats_json
    from .analysis.features.workload import Settings as Settings
    from .analysis.features.workload import Workload as Workload
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
