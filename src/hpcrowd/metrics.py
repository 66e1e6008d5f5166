"""Metrics of runs and traces."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.comparison.numbers import Comparison as Comparison
    from .analysis.curves import profile_distance as profile_distance
    from .analysis.curves import weekly_profile as weekly_profile
    from .analysis.metrics import METRICS as METRICS
    from .analysis.metrics import format_metric as format_metric
    from .analysis.metrics import lateness as lateness
    from .analysis.metrics import per_user as per_user
    from .analysis.metrics import session_stats as session_stats
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
