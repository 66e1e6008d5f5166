from .arrivals.cycle import Cycle
from .fitting import fit, published
from .generation import Generated, generate
from .judgement import Judgement, judge, judgement_html
from .locality import with_correlation
from .model import WorkloadModel, read_model, write_model
from .part import ArrivalModel, Drawn, JobModel, Part
from .registry import ARRIVALS, MODELS

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
