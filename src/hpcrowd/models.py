"""Workload models: fitted, published, judged and written to files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.models.generation import Generated as Generated
    from .analysis.models.jobs.locality import control_correlation as control_correlation
    from .analysis.models.jobs.locality import with_correlation as with_correlation
    from .analysis.models.judgement import Judgement as Judgement
    from .analysis.models.judgement import judge as judge
    from .analysis.models.judgement import judgement_html as judgement_html
    from .analysis.models.model import ARRIVALS as ARRIVALS
    from .analysis.models.model import MODELS as MODELS
    from .analysis.models.model import WorkloadModel as WorkloadModel
    from .analysis.models.model import published as published
    from .analysis.models.model import read_model as read_model
    from .analysis.models.model import write_model as write_model
    from .analysis.models.parts.base import ArrivalModel as ArrivalModel
    from .analysis.models.parts.base import Cycle as Cycle
    from .analysis.models.parts.base import Drawn as Drawn
    from .analysis.models.parts.base import JobModel as JobModel
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
