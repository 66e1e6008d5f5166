from .generation import Generated, generate
from .jobs.locality import with_correlation
from .judgement import Judgement, judge, judgement_html
from .model import ARRIVALS, MODELS, WorkloadModel, fit, published, read_model, write_model
from .parts.base import ArrivalModel, Drawn, JobModel, Part
from .parts.cycle import Cycle

__all__ = [
    "ARRIVALS",
    "MODELS",
    "ArrivalModel",
    "Cycle",
    "Drawn",
    "Generated",
    "JobModel",
    "Judgement",
    "Part",
    "WorkloadModel",
    "fit",
    "generate",
    "judge",
    "judgement_html",
    "published",
    "read_model",
    "with_correlation",
    "write_model",
]
