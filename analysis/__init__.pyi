from .accounts.population import population_accounts
from .accounts.reactions import account, notes_of
from .comparison.numbers import Comparison, compare
from .comparison.pictures import draw_runs, queues
from .comparison.report import write_comparison
from .loading import read_recorded, read_results, read_run
from .metrics import METRICS, lateness, per_user, summarize
from .models.correlation import control_correlation, foretold_signs
from .pictures.files import write_picture
from .pictures.gantt import busiest_day, gantt
from .pictures.over_time import submissions_over_time, use_over_time, week_of
from .pictures.plots import overview, write_overview
from .pictures.small_gantt import small_gantt
from .pictures.think_times import think_against_response
from .pictures.user_waits import users_waits, waits_apart
from .pictures.visits import comings_and_goings
from .pictures.wait_classes import wait_classes, waits_by_class
from .prediction.scores import Accuracy, evaluate, past_jobs
from .prediction.training import train
from .profiles import profile_distance, weekly_profile
from .report.figures import RUN_FIGURES, write_figures
from .report.html import format_metric
from .report.runs import report_html, write_report_figures
from .results import write_results
from .run import Run
from .sessions import session_stats
from .validation.parts import UserModel
from .validation.validation import Validation, validate

__all__ = [
    "METRICS",
    "RUN_FIGURES",
    "Accuracy",
    "Comparison",
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
    "foretold_signs",
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
