from .comparison import comparison, queues
from .comparison_numbers import Comparison, compare
from .comparison_report import write_comparison
from .correlation import control_correlation, foretold_signs
from .gantt import gantt
from .gantt_small import small_gantt
from .gantt_window import busiest_day
from .loading import read_recorded, read_results, read_run
from .metrics import METRICS, lateness, per_user, summarize
from .picture_files import write_picture
from .plots import overview, write_overview
from .population_accounts import population_accounts
from .prediction import Accuracy, evaluate, past_jobs
from .profiles import profile_distance, weekly_profile
from .published import published_rows
from .reaction_accounts import account, notes_of
from .rebound import Rebound
from .report import format_metric
from .results import write_results
from .run import Run
from .run_curves import submissions_over_time, use_over_time, week_of
from .run_figures import RUN_FIGURES, write_figures
from .run_report import report_html, write_report_figures
from .session_stats import session_stats
from .think_picture import think_against_response
from .training import train
from .user_waits import users_waits, waits_apart
from .validation import Validation, validate
from .validation_parts import UserModel
from .visits_picture import comings_and_goings
from .wait_classes import wait_classes, waits_by_class

__all__ = [
    "METRICS",
    "RUN_FIGURES",
    "Accuracy",
    "Comparison",
    "Rebound",
    "Run",
    "UserModel",
    "Validation",
    "account",
    "busiest_day",
    "comings_and_goings",
    "compare",
    "comparison",
    "control_correlation",
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
    "published_rows",
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
