"""Studies, many of which reproduce the figures of a paper."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scenarios.engines import Engine as Engine
    from .scenarios.studies.madon2024.study import reproduce_madon2024 as reproduce_madon2024
    from .scenarios.studies.minh2012.arrivals import (
        reproduce_minh2012_arrivals as reproduce_minh2012_arrivals,
    )
    from .scenarios.studies.minh2012.correlation import (
        reproduce_minh2012_correlation as reproduce_minh2012_correlation,
    )
    from .scenarios.studies.minh2012.correlation_measures import foretold_signs as foretold_signs
    from .scenarios.studies.minh2012.features import (
        reproduce_minh2012_features as reproduce_minh2012_features,
    )
    from .scenarios.studies.minh2012.models import (
        reproduce_minh2012_models as reproduce_minh2012_models,
    )
    from .scenarios.studies.minh2012.predictor import (
        reproduce_minh2012_predictor as reproduce_minh2012_predictor,
    )
    from .scenarios.studies.published import published_rows as published_rows
    from .scenarios.studies.rebound.run import Rebound as Rebound
    from .scenarios.studies.rebound.run import draws_of as draws_of
    from .scenarios.studies.rebound.run import run_rebound as run_rebound
    from .scenarios.studies.zakay2015.study import reproduce_zakay2015 as reproduce_zakay2015
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
