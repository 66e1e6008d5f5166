"""Predictions of run times: what schedulers believe, and how right they are."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.prediction import Accuracy as Accuracy
    from .analysis.prediction import evaluate as evaluate
    from .analysis.prediction import past_jobs as past_jobs
    from .analysis.prediction import train as train
    from .environment.schedulers.estimates import Estimates as Estimates
    from .environment.schedulers.estimates import Predictor as Predictor
    from .environment.schedulers.estimates import parse_estimates as parse_estimates
    from .environment.schedulers.policies.adaptive import (
        WeeklyCorrelation as WeeklyCorrelation,
    )
    from .environment.schedulers.policies.adaptive import rank_correlation as rank_correlation
    from .environment.schedulers.policies.adaptive import (
        weekly_correlations as weekly_correlations,
    )
    from .environment.schedulers.predictors.experience import LastTwo as LastTwo
    from .environment.schedulers.predictors.experience import Nearest as Nearest
    from .environment.schedulers.predictors.history import Group as Group
    from .environment.schedulers.predictors.history import HistoryParameters as HistoryParameters
    from .environment.schedulers.predictors.history import HistoryPredictor as HistoryPredictor
    from .environment.schedulers.predictors.models import parse_predictor as parse_predictor
    from .environment.schedulers.predictors.models import read_predictor as read_predictor
    from .environment.schedulers.predictors.models import write_predictor as write_predictor
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
