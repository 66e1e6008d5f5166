from .archetypes import Debugger, LargeRuns, NightScript, ParameterSweeper, demo_population
from .behaviours import Rigid, ThinkTime
from .generated import GeneratedUser, LogNormal
from .graph import Dependencies, find_dependencies, longest_paths, user_graph
from .office import Office
from .population import add_users
from .sessions import SessionDefinition, Sessions, find_sessions
from .user import Behaviour, ReplayUser, User
from .windows import ActivityWindow
from .work import Work

__all__ = [
    "ActivityWindow",
    "Behaviour",
    "Debugger",
    "Dependencies",
    "GeneratedUser",
    "LargeRuns",
    "LogNormal",
    "NightScript",
    "Office",
    "ParameterSweeper",
    "ReplayUser",
    "Rigid",
    "SessionDefinition",
    "Sessions",
    "ThinkTime",
    "User",
    "Work",
    "add_users",
    "demo_population",
    "find_dependencies",
    "find_sessions",
    "longest_paths",
    "user_graph",
]
