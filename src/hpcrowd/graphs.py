"""Sessions, and the graphs of jobs that depend on each other."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agents.behaviours.user_graph import UserGraph as UserGraph
    from .agents.work.graph import Chains as Chains
    from .agents.work.graph import Dependencies as Dependencies
    from .agents.work.graph import find_dependencies as find_dependencies
    from .agents.work.graph import longest_paths as longest_paths
    from .agents.work.sessions import Sessions as Sessions
    from .agents.work.units import Units as Units
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
