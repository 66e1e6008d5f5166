from .accounts.population import population_accounts
from .accounts.reactions import account, notes_of
from .calibration.posterior import Posterior, read_posterior
from .comparison.numbers import Comparison, compare
from .comparison.pictures import draw_runs, queues
from .comparison.report import write_comparison
from .curves import profile_distance, weekly_profile
from .metrics import METRICS, format_metric, lateness, per_user, session_stats, summarize
from .models.jobs.locality import control_correlation
from .pictures.gantt import busiest_day, gantt
from .pictures.over_time import (
    comings_and_goings,
    overview,
    submissions_over_time,
    use_over_time,
    week_of,
    write_overview,
)
from .pictures.plots import write_picture
from .pictures.small_gantt import small_gantt
from .pictures.waits import users_waits, wait_classes, waits_apart, waits_by_class
from .prediction import Accuracy, evaluate, past_jobs, train
from .report.figures import RUN_FIGURES, think_against_response, write_figures
from .report.runs import report_html, write_report_figures
from .results import read_recorded, read_results, read_run, write_results
from .run import Run
from .validation.models import UserModel
from .validation.validation import Validation, validate

__all__ = [
    "METRICS",
    "RUN_FIGURES",
    "Accuracy",
    "Comparison",
    "Posterior",
    "Run",
    "UserModel",
    "Validation",
    "account",
    "busiest_day",
    "comings_and_goings",
    "compare",
    "control_correlation",
    "draw_runs",
    "evaluate",
    "format_metric",
    "gantt",
    "lateness",
    "notes_of",
    "overview",
    "past_jobs",
    "per_user",
    "population_accounts",
    "profile_distance",
    "queues",
    "read_posterior",
    "read_recorded",
    "read_results",
    "read_run",
    "report_html",
    "session_stats",
    "small_gantt",
    "submissions_over_time",
    "summarize",
    "think_against_response",
    "train",
    "use_over_time",
    "users_waits",
    "validate",
    "wait_classes",
    "waits_apart",
    "waits_by_class",
    "week_of",
    "weekly_profile",
    "write_comparison",
    "write_figures",
    "write_overview",
    "write_picture",
    "write_report_figures",
    "write_results",
]
