from .activity import Activity, RecordedSessions, SameWindow, Shifts, WorkPattern
from .archetypes import Debugger, LargeRuns, NightScript, ParameterSweeper, demo_population
from .behaviours import Rigid, ThinkTime
from .composed import Composed
from .generated import GeneratedUser, LogNormal
from .graph import Dependencies, find_dependencies, longest_paths, user_graph
from .mixture import Mixture, Part
from .office import Office
from .population import add_users
from .presets import PRESETS, Fitted, Recipe
from .profiles import ActiveTime, Profiles, WeeklyProfile
from .reactions import Intention, Reaction
from .sessions import SessionDefinition, Sessions, find_sessions
from .think import (
    Continuation,
    ContinuationLaw,
    LinearThink,
    OwnPauses,
    Pause,
    RecordedPauses,
    Think,
)
from .units import Units
from .user import Behaviour, ReplayUser, User
from .when import BatchOrder, Reason, Recorded, Release, SessionGraph, When
from .windows import ActivityWindow, WeeklyWindow
from .work import Work

__all__ = [
    "PRESETS",
    "ActiveTime",
    "Activity",
    "ActivityWindow",
    "BatchOrder",
    "Behaviour",
    "Composed",
    "Continuation",
    "ContinuationLaw",
    "Debugger",
    "Dependencies",
    "Fitted",
    "GeneratedUser",
    "Intention",
    "LargeRuns",
    "LinearThink",
    "LogNormal",
    "Mixture",
    "NightScript",
    "Office",
    "OwnPauses",
    "ParameterSweeper",
    "Part",
    "Pause",
    "Profiles",
    "Reaction",
    "Reason",
    "Recipe",
    "Recorded",
    "RecordedPauses",
    "RecordedSessions",
    "Release",
    "ReplayUser",
    "Rigid",
    "SameWindow",
    "SessionDefinition",
    "SessionGraph",
    "Sessions",
    "Shifts",
    "Think",
    "ThinkTime",
    "Units",
    "User",
    "WeeklyProfile",
    "WeeklyWindow",
    "When",
    "Work",
    "WorkPattern",
    "add_users",
    "demo_population",
    "find_dependencies",
    "find_sessions",
    "longest_paths",
    "user_graph",
]
