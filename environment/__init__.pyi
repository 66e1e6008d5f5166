from .archive import ArchiveLog, archive_logs, cache_folder, fetch, trace_path
from .broker import GridBroker, GridSpec
from .cleaning import Cleaned, CleaningRules, clean
from .clock import Clock
from .cluster import (
    Cluster,
    ClusterSpec,
)
from .correlation import WeeklyCorrelation, rank_correlation, weekly_correlations
from .errors import (
    ArchiveError,
    HpcrowdError,
    ModelFileError,
    ModelFitError,
    ParseError,
    PredictorError,
    QuantityError,
    ResultsError,
    SchedulerError,
    SignalError,
    SimulationError,
    TraceError,
    UnavailableError,
)
from .estimates import Estimates, parse_estimates
from .flurries import Flurry, FlurryRule
from .formats.base import FormatOptions, Losses
from .formats.batsim_jobs import (
    generate_batsim_jobs,
    parse_batsim_jobs,
    read_batsim_jobs,
    write_batsim_jobs,
)
from .formats.batsim_json import generate_batsim, parse_batsim, read_batsim, write_batsim
from .formats.csv_columns import generate_csv, parse_csv, read_csv, write_csv
from .formats.gwf import generate_gwf, parse_gwf, read_gwf, write_gwf
from .formats.mapped import generate_mapped, parse_mapped, read_mapped, write_mapped
from .formats.mapping import TableMapping, read_mapping
from .formats.names import anonymised
from .formats.parquet import generate_parquet, parse_parquet, read_parquet, write_parquet
from .formats.pbs import generate_pbs, parse_pbs, read_pbs, write_pbs
from .formats.registry import find_format, parse_format, read_trace, write_trace
from .formats.sacct import generate_sacct, parse_sacct, read_sacct, write_sacct
from .formats.swf import (
    generate_swf,
    parse_swf,
    read_swf,
    write_swf,
)
from .grid import GridJob, GridPolicy, Site
from .jobs import (
    Column,
    JobTable,
    State,
)
from .platform import (
    Failures,
    Maintenance,
    NodesDown,
    Resize,
    SpeedChange,
    SwitchPolicy,
)
from .predictors.base import Predictor
from .predictors.history import Group, HistoryParameters, HistoryPredictor
from .predictors.last_two import LastTwo
from .predictors.models import parse_predictor, read_predictor, write_predictor
from .predictors.nearest import Nearest
from .request_model import RequestModel
from .schedulers.adaptive import Adaptive
from .schedulers.base import (
    EndedJob,
    RunningJob,
    Scheduler,
    WaitingJob,
)
from .schedulers.conservative import Conservative
from .schedulers.creasy import Creasy
from .schedulers.easy import EASY
from .schedulers.fair_share import FairShare
from .schedulers.fcfs import FCFS
from .schedulers.multi_queue import MultiQueue
from .schedulers.names import parse_scheduler
from .schedulers.order import LJF, SJF, Order
from .schedulers.reasons import ReasonCode, WaitingReason
from .schedulers.selective import Selective, SelectiveCategorized
from .signals import Signal, parse_signal, read_signal
from .simulation import Simulation
from .streams import Streams
from .trace import (
    Conversion,
    Header,
    Trace,
    jobs_from_trace,
)
from .trace_window import Windowed, window
from .waiting_reasons import reasons_at, reasons_of

__all__ = [
    "EASY",
    "FCFS",
    "LJF",
    "SJF",
    "Adaptive",
    "ArchiveError",
    "ArchiveLog",
    "Cleaned",
    "CleaningRules",
    "Clock",
    "Cluster",
    "ClusterSpec",
    "Column",
    "Conservative",
    "Conversion",
    "Creasy",
    "EndedJob",
    "Estimates",
    "Failures",
    "FairShare",
    "Flurry",
    "FlurryRule",
    "FormatOptions",
    "GridBroker",
    "GridJob",
    "GridPolicy",
    "GridSpec",
    "Group",
    "Header",
    "HistoryParameters",
    "HistoryPredictor",
    "HpcrowdError",
    "JobTable",
    "LastTwo",
    "Losses",
    "Maintenance",
    "ModelFileError",
    "ModelFitError",
    "MultiQueue",
    "Nearest",
    "NodesDown",
    "Order",
    "ParseError",
    "Predictor",
    "PredictorError",
    "QuantityError",
    "ReasonCode",
    "RequestModel",
    "Resize",
    "ResultsError",
    "RunningJob",
    "Scheduler",
    "SchedulerError",
    "Selective",
    "SelectiveCategorized",
    "Signal",
    "SignalError",
    "Simulation",
    "SimulationError",
    "Site",
    "SpeedChange",
    "State",
    "Streams",
    "SwitchPolicy",
    "TableMapping",
    "Trace",
    "TraceError",
    "UnavailableError",
    "WaitingJob",
    "WaitingReason",
    "WeeklyCorrelation",
    "Windowed",
    "anonymised",
    "archive_logs",
    "cache_folder",
    "clean",
    "fetch",
    "find_format",
    "generate_batsim",
    "generate_batsim_jobs",
    "generate_csv",
    "generate_gwf",
    "generate_mapped",
    "generate_parquet",
    "generate_pbs",
    "generate_sacct",
    "generate_swf",
    "jobs_from_trace",
    "parse_batsim",
    "parse_batsim_jobs",
    "parse_csv",
    "parse_estimates",
    "parse_format",
    "parse_gwf",
    "parse_mapped",
    "parse_parquet",
    "parse_pbs",
    "parse_predictor",
    "parse_sacct",
    "parse_scheduler",
    "parse_signal",
    "parse_swf",
    "rank_correlation",
    "read_batsim",
    "read_batsim_jobs",
    "read_csv",
    "read_gwf",
    "read_mapped",
    "read_mapping",
    "read_parquet",
    "read_pbs",
    "read_predictor",
    "read_sacct",
    "read_signal",
    "read_swf",
    "read_trace",
    "reasons_at",
    "reasons_of",
    "trace_path",
    "weekly_correlations",
    "window",
    "write_batsim",
    "write_batsim_jobs",
    "write_csv",
    "write_gwf",
    "write_mapped",
    "write_parquet",
    "write_pbs",
    "write_predictor",
    "write_sacct",
    "write_swf",
    "write_trace",
]
