from .config import ReplayConfig, configure
from .demo import run_demo
from .draws import draws_of
from .grid import run_grid
from .grid_config import GridConfig, read_grid
from .minh2012_arrivals import reproduce_minh2012_arrivals
from .minh2012_correlation import reproduce_minh2012_correlation
from .minh2012_features import reproduce_minh2012_features
from .minh2012_models import reproduce_minh2012_models
from .minh2012_predictor import reproduce_minh2012_predictor
from .reaction_config import reaction_from
from .rebound import run_rebound
from .replay import replay
from .reproduce import reproduce_madon2024
from .resample import resample
from .resample_config import ResampleConfig, configure_resample
from .scenario_file import read_scenario
from .sweep_config import Study, read_study
from .sweep_engines import Engine
from .sweep_runs import sweep
from .whatif import compare
from .zakay2015 import reproduce_zakay2015

__all__ = [
    "Engine",
    "GridConfig",
    "ReplayConfig",
    "ResampleConfig",
    "Study",
    "compare",
    "configure",
    "configure_resample",
    "draws_of",
    "reaction_from",
    "read_grid",
    "read_scenario",
    "read_study",
    "replay",
    "reproduce_madon2024",
    "reproduce_minh2012_arrivals",
    "reproduce_minh2012_correlation",
    "reproduce_minh2012_features",
    "reproduce_minh2012_models",
    "reproduce_minh2012_predictor",
    "reproduce_zakay2015",
    "resample",
    "run_demo",
    "run_grid",
    "run_rebound",
    "sweep",
]
