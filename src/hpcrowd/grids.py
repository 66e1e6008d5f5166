"""Grids: clusters that share their jobs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.grid.broker import Grid as Grid
    from .environment.grid.broker import GridBroker as GridBroker
    from .environment.grid.policies import GridJob as GridJob
    from .environment.grid.policies import GridPolicy as GridPolicy
    from .environment.grid.policies import Site as Site
    from .scenarios.kinds.grids.grid import GridConfig as GridConfig
    from .scenarios.kinds.grids.grid import read_grid as read_grid
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
