"""Forecasts, and the states of clusters that they start from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.state.files import read_state as read_state
    from .environment.state.files import write_state as write_state
    from .environment.state.site_fit import SiteFit as SiteFit
    from .environment.state.site_fit import fit_site as fit_site
    from .environment.state.slurm import state_of_slurm as state_of_slurm
    from .environment.state.state import ClusterState as ClusterState
    from .scenarios.forecasts.forecast import Forecast as Forecast
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
