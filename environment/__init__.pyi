from .clock import Clock
from .cluster import Cluster, ClusterSpec
from .errors import (
    ArchiveError,
    HpcrowdError,
    MachineError,
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
from .grid.broker import Grid, GridBroker
from .grid.policies import GridJob, GridPolicy, Site
from .header import Header
from .jobs import Column, JobTable, State
from .machine.files.reading import read_machine
from .machine.files.toml_text import machine_toml, write_machine
from .machine.model import Machine
from .platform.changes import Failures, Maintenance, NodesDown, Resize, SpeedChange, SwitchPolicy
from .platform.part import Platform
from .power.description import NodePower, Power
from .power.in_use import PowerInUse
from .schedulers.adaptive import Adaptive
from .schedulers.base import (
    EndedJob,
    Look,
    ReasonCode,
    RunningJob,
    Scheduler,
    WaitingJob,
    WaitingReason,
)
from .schedulers.conservative import Conservative
from .schedulers.correlation import WeeklyCorrelation, rank_correlation, weekly_correlations
from .schedulers.creasy import Creasy
from .schedulers.easy import EASY
from .schedulers.estimates import Estimates
from .schedulers.fair_share import FairShare
from .schedulers.multi_queue import MultiQueue
from .schedulers.names import parse_scheduler
from .schedulers.on_nodes.in_use import MachineInUse
from .schedulers.order import FCFS, LJF, SJF, Order
from .schedulers.predictors.base import Predictor, parse_estimates
from .schedulers.predictors.history import Group, HistoryParameters, HistoryPredictor
from .schedulers.predictors.last_two import LastTwo
from .schedulers.predictors.models import parse_predictor, read_predictor, write_predictor
from .schedulers.predictors.nearest import Nearest
from .schedulers.priority import F1, F2, F3, F4, WFP3, Multifactor, Priority, Queue, Unicef
from .schedulers.selective import Selective, SelectiveCategorized
from .signals.cooling import Cooling
from .signals.published import SignalFile
from .signals.signal import Signal, parse_signal, read_signal
from .signals.tariff import Tariff, TariffPeriod
from .simulation import Simulation
from .state.files import read_state, write_state
from .state.slurm import state_of_slurm
from .state.state import ClusterState
from .streams import Streams
from .traces.archive.logs import ArchiveLog, archive_logs, cache_folder, fetch, trace_path
from .traces.cleaning import Cleaned, CleaningRules, Flurry, FlurryRule, clean
from .traces.formats.batsim.jobs import (
    generate_batsim_jobs,
    parse_batsim_jobs,
    read_batsim_jobs,
    write_batsim_jobs,
)
from .traces.formats.batsim.workloads import (
    generate_batsim,
    parse_batsim,
    read_batsim,
    write_batsim,
)
from .traces.formats.common.base import FormatOptions, Losses
from .traces.formats.common.names import anonymised
from .traces.formats.gridengine import (
    generate_gridengine,
    parse_gridengine,
    read_gridengine,
    write_gridengine,
)
from .traces.formats.gwf import generate_gwf, parse_gwf, read_gwf, write_gwf
from .traces.formats.htcondor import (
    generate_htcondor,
    parse_htcondor,
    read_htcondor,
    write_htcondor,
)
from .traces.formats.lsf import generate_lsf, parse_lsf, read_lsf, write_lsf
from .traces.formats.pbs.accounting import generate_pbs, parse_pbs, read_pbs, write_pbs
from .traces.formats.registry import find_format, parse_format, read_trace, write_trace
from .traces.formats.slurm.accounting import generate_sacct, parse_sacct, read_sacct, write_sacct
from .traces.formats.slurm.json_records import (
    generate_sacct_json,
    parse_sacct_json,
    read_sacct_json,
    write_sacct_json,
)
from .traces.formats.swf import generate_swf, parse_swf, read_swf, write_swf
from .traces.formats.tables.columns import (
    generate_csv,
    generate_parquet,
    parse_csv,
    parse_parquet,
    read_csv,
    read_parquet,
    write_csv,
    write_parquet,
)
from .traces.formats.tables.mapped import (
    generate_mapped,
    parse_mapped,
    read_mapped,
    write_mapped,
)
from .traces.formats.tables.mapping import TableMapping, read_mapping
from .traces.request_model import RequestModel
from .traces.trace import Conversion, Trace, jobs_from_trace
from .traces.window import Windowed, window
from .waiting_reasons import reasons_at, reasons_of

__all__ = [
    "EASY",
    "F1",
    "F2",
    "F3",
    "F4",
    "FCFS",
    "LJF",
    "SJF",
    "WFP3",
    "Adaptive",
    "ArchiveError",
    "ArchiveLog",
    "Cleaned",
    "CleaningRules",
    "Clock",
    "Cluster",
    "ClusterSpec",
    "ClusterState",
    "Column",
    "Conservative",
    "Conversion",
    "Cooling",
    "Creasy",
    "EndedJob",
    "Estimates",
    "Failures",
    "FairShare",
    "Flurry",
    "FlurryRule",
    "FormatOptions",
    "Grid",
    "GridBroker",
    "GridJob",
    "GridPolicy",
    "Group",
    "Header",
    "HistoryParameters",
    "HistoryPredictor",
    "HpcrowdError",
    "JobTable",
    "LastTwo",
    "Look",
    "Losses",
    "Machine",
    "MachineError",
    "MachineInUse",
    "Maintenance",
    "ModelFileError",
    "ModelFitError",
    "MultiQueue",
    "Multifactor",
    "Nearest",
    "NodePower",
    "NodesDown",
    "Order",
    "ParseError",
    "Platform",
    "Power",
    "PowerInUse",
    "Predictor",
    "PredictorError",
    "Priority",
    "QuantityError",
    "Queue",
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
    "SignalFile",
    "Simulation",
    "SimulationError",
    "Site",
    "SpeedChange",
    "State",
    "Streams",
    "SwitchPolicy",
    "TableMapping",
    "Tariff",
    "TariffPeriod",
    "Trace",
    "TraceError",
    "UnavailableError",
    "Unicef",
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
    "generate_gridengine",
    "generate_gwf",
    "generate_htcondor",
    "generate_lsf",
    "generate_mapped",
    "generate_parquet",
    "generate_pbs",
    "generate_sacct",
    "generate_sacct_json",
    "generate_swf",
    "jobs_from_trace",
    "machine_toml",
    "parse_batsim",
    "parse_batsim_jobs",
    "parse_csv",
    "parse_estimates",
    "parse_format",
    "parse_gridengine",
    "parse_gwf",
    "parse_htcondor",
    "parse_lsf",
    "parse_mapped",
    "parse_parquet",
    "parse_pbs",
    "parse_predictor",
    "parse_sacct",
    "parse_sacct_json",
    "parse_scheduler",
    "parse_signal",
    "parse_swf",
    "rank_correlation",
    "read_batsim",
    "read_batsim_jobs",
    "read_csv",
    "read_gridengine",
    "read_gwf",
    "read_htcondor",
    "read_lsf",
    "read_machine",
    "read_mapped",
    "read_mapping",
    "read_parquet",
    "read_pbs",
    "read_predictor",
    "read_sacct",
    "read_sacct_json",
    "read_signal",
    "read_state",
    "read_swf",
    "read_trace",
    "reasons_at",
    "reasons_of",
    "state_of_slurm",
    "trace_path",
    "weekly_correlations",
    "window",
    "write_batsim",
    "write_batsim_jobs",
    "write_csv",
    "write_gridengine",
    "write_gwf",
    "write_htcondor",
    "write_lsf",
    "write_machine",
    "write_mapped",
    "write_parquet",
    "write_pbs",
    "write_predictor",
    "write_sacct",
    "write_sacct_json",
    "write_state",
    "write_swf",
    "write_trace",
]
