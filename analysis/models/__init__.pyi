from .correlated import with_correlation
from .cycle import Cycle
from .fit import fit, published
from .generate import Generated, generate
from .judge import Judgement, judge
from .judge_report import judgement_html
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
