from .generate import Generated, generate
from .model import WorkloadModel, read_model, write_model
from .part import ArrivalModel, Drawn, JobModel, Part
from .registry import ARRIVALS, MODELS

__all__ = [
    "ARRIVALS",
    "MODELS",
    "ArrivalModel",
    "Drawn",
    "Generated",
    "JobModel",
    "Part",
    "WorkloadModel",
    "generate",
    "read_model",
    "write_model",
]
