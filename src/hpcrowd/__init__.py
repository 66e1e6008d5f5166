"""Agent-based simulation of the people who use batch-scheduled clusters.

``import hpcrowd as hc`` gives what scripts need most, and modules with all other public names, such
as ``hc.policies``. Each is loaded when it is first used::

    run = hc.replay(hc.read_trace("log.swf.gz"), users="think-time", processors="2x")
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import agents as agents
    from . import analysis as analysis
    from . import behaviours as behaviours
    from . import calibration as calibration
    from . import environment as environment
    from . import errors as errors
    from . import features as features
    from . import forecasts as forecasts
    from . import formats as formats
    from . import graphs as graphs
    from . import grids as grids
    from . import gym as gym
    from . import metrics as metrics
    from . import models as models
    from . import pictures as pictures
    from . import platform as platform
    from . import policies as policies
    from . import populations as populations
    from . import power as power
    from . import predictors as predictors
    from . import reactions as reactions
    from . import scenarios as scenarios
    from . import studies as studies
    from . import traces as traces
    from . import views as views
    from .agents.behaviours.user import Behaviour as Behaviour
    from .agents.behaviours.user import ReplayUser as ReplayUser
    from .agents.behaviours.user import User as User
    from .agents.populations.handover import give_behaviour as give_behaviour
    from .agents.populations.population import add_users as add_users
    from .agents.presets import Recipe as Recipe
    from .agents.work.graph import user_graph as user_graph
    from .agents.work.recorded import Work as Work
    from .agents.work.sessions import SessionDefinition as SessionDefinition
    from .agents.work.sessions import find_sessions as find_sessions
    from .analysis.comparison.numbers import compare as compare
    from .analysis.metrics import summarize as summarize
    from .analysis.models.generation import generate as generate
    from .analysis.models.model import fit as fit
    from .analysis.pictures.gantt import gantt as gantt
    from .analysis.pictures.plots import write_picture as write_picture
    from .analysis.results import read_recorded as read_recorded
    from .analysis.results import read_results as read_results
    from .analysis.results import read_run as read_run
    from .analysis.results import write_results as write_results
    from .analysis.run import Run as Run
    from .analysis.validation.validation import validate as validate
    from .environment.clock import Clock as Clock
    from .environment.cluster import Cluster as Cluster
    from .environment.cluster import ClusterSpec as ClusterSpec
    from .environment.errors import HpcrowdError as HpcrowdError
    from .environment.jobs import Column as Column
    from .environment.jobs import JobTable as JobTable
    from .environment.jobs import State as State
    from .environment.machine.files.reading import read_machine as read_machine
    from .environment.machine.files.toml_text import write_machine as write_machine
    from .environment.machine.model import Machine as Machine
    from .environment.schedulers.base import Scheduler as Scheduler
    from .environment.simulation import Simulation as Simulation
    from .environment.streams import Streams as Streams
    from .environment.traces.archive.logs import fetch as fetch
    from .environment.traces.cleaning import clean as clean
    from .environment.traces.formats.registry import read_trace as read_trace
    from .environment.traces.formats.registry import write_trace as write_trace
    from .environment.traces.formats.swf import generate_swf as generate_swf
    from .environment.traces.formats.swf import parse_swf as parse_swf
    from .environment.traces.formats.swf import read_swf as read_swf
    from .environment.traces.formats.swf import write_swf as write_swf
    from .environment.traces.trace import Trace as Trace
    from .environment.traces.trace import jobs_from_trace as jobs_from_trace
    from .environment.traces.window import window as window
    from .scenarios.calibration.calibrate import calibrate as calibrate
    from .scenarios.demo import run_demo as run_demo
    from .scenarios.forecasts.forecast import forecast as forecast
    from .scenarios.kinds.files import read_scenario as read_scenario
    from .scenarios.kinds.grids.grid import run_grid as run_grid
    from .scenarios.kinds.populations.populate import PopulateConfig as PopulateConfig
    from .scenarios.kinds.populations.populate import populate as populate
    from .scenarios.kinds.populations.resample import ResampleConfig as ResampleConfig
    from .scenarios.kinds.populations.resample import resample as resample
    from .scenarios.kinds.replay import ReplayConfig as ReplayConfig
    from .scenarios.kinds.replay import replay as replay
    from .scenarios.sweeps.runs import sweep as sweep
    from .scenarios.sweeps.study import Study as Study
    from .scenarios.sweeps.study import read_study as read_study
    from .scenarios.whatif.change import what_if as what_if
else:
    from hpcrowd import kernels
    from hpcrowd.names import lazy

    kernels.install()
    del kernels
    __getattr__, __dir__, __all__ = lazy(__name__)
