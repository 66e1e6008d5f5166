from .comparison import comparison, queues
from .comparison_numbers import Comparison, compare
from .comparison_report import comparison_html, write_comparison
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
from .report import format_metric, html_report
from .results import write_results
from .run import Run
from .session_stats import session_stats
from .training import train
from .validation import Validation, validate
from .validation_parts import UserModel

__all__ = [
    "METRICS",
    "Accuracy",
    "Comparison",
    "Rebound",
    "Run",
    "UserModel",
    "Validation",
    "account",
    "busiest_day",
    "compare",
    "comparison",
    "comparison_html",
    "control_correlation",
    "evaluate",
    "foretold_signs",
    "format_metric",
    "gantt",
    "html_report",
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
    "session_stats",
    "small_gantt",
    "summarize",
    "train",
    "validate",
    "weekly_profile",
    "write_comparison",
    "write_overview",
    "write_picture",
    "write_results",
]
