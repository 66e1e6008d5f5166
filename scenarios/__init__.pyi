from .calibration.calibrate import Calibration, calibrate, write_posterior
from .demo import run_demo
from .forecasts.forecast import Forecast, forecast
from .kinds.files import read_scenario
from .kinds.grid import GridConfig, read_grid, run_grid
from .kinds.part_files import reaction_from
from .kinds.populate import PopulateConfig, populate
from .kinds.replay import ReplayConfig, replay
from .kinds.resample import ResampleConfig, resample
from .studies.madon2024.study import reproduce_madon2024
from .studies.minh2012_arrivals.study import reproduce_minh2012_arrivals
from .studies.minh2012_correlation.measures import foretold_signs
from .studies.minh2012_correlation.study import reproduce_minh2012_correlation
from .studies.minh2012_features.study import reproduce_minh2012_features
from .studies.minh2012_models.study import reproduce_minh2012_models
from .studies.minh2012_predictor.study import reproduce_minh2012_predictor
from .studies.published import published_rows
from .studies.rebound.draws import draws_of
from .studies.rebound.measures import Rebound
from .studies.rebound.run import run_rebound
from .studies.zakay2015.study import reproduce_zakay2015
from .sweeps.engines import Engine
from .sweeps.runs import sweep
from .sweeps.study import Study, read_study
from .whatif.scripts import what_if

__all__ = [
    "Calibration",
    "Engine",
    "Forecast",
    "GridConfig",
    "PopulateConfig",
    "Rebound",
    "ReplayConfig",
    "ResampleConfig",
    "Study",
    "calibrate",
    "draws_of",
    "forecast",
    "foretold_signs",
    "populate",
    "published_rows",
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
    "what_if",
    "write_posterior",
]
