from .activity import Activity, RecordedSessions, SameWindow, Shifts, WorkPattern
from .archetypes import Debugger, LargeRuns, NightScript, ParameterSweeper, demo_population
from .attendance import Attendance
from .behaviours import Rigid, ThinkTime
from .casting import Casting
from .composed import Composed
from .empirical import Empirical, Habits
from .generated import GeneratedUser, Generating, LogNormal
from .graph import Dependencies, find_dependencies, longest_paths, user_graph
from .heldout import HeldOut, OpenOrder, PausePool, SimilarPauses
from .mixture import Mixture, Part
from .office import Office
from .population import add_users
from .presets import PRESETS, Fitted, Recipe
from .profiles import ActiveTime, Profiles, WeeklyProfile
from .reactions import Intention, Note, Reaction
from .repeated import Chains
from .responses import Degrade, Delay, Reconfigure, Renounce, Response, Switch
from .sessions import SessionDefinition, Sessions, find_sessions
from .shmueli import ShmueliFeitelson, SiteModel
from .site_users import Doing, SiteUser
from .think import (
    Continuation,
    ContinuationLaw,
    LinearThink,
    OwnPauses,
    Pause,
    RecordedPauses,
    Think,
    response_time,
)
from .triggers import During, OnSignal, Patience, Trigger, WeekHours
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
    "Attendance",
    "BatchOrder",
    "Behaviour",
    "Casting",
    "Chains",
    "Composed",
    "Continuation",
    "ContinuationLaw",
    "Debugger",
    "Degrade",
    "Delay",
    "Dependencies",
    "Doing",
    "During",
    "Empirical",
    "Fitted",
    "GeneratedUser",
    "Generating",
    "Habits",
    "HeldOut",
    "Intention",
    "LargeRuns",
    "LinearThink",
    "LogNormal",
    "Mixture",
    "NightScript",
    "Note",
    "Office",
    "OnSignal",
    "OpenOrder",
    "OwnPauses",
    "ParameterSweeper",
    "Part",
    "Patience",
    "Pause",
    "PausePool",
    "Profiles",
    "Reaction",
    "Reason",
    "Recipe",
    "Reconfigure",
    "Recorded",
    "RecordedPauses",
    "RecordedSessions",
    "Release",
    "Renounce",
    "ReplayUser",
    "Response",
    "Rigid",
    "SameWindow",
    "SessionDefinition",
    "SessionGraph",
    "Sessions",
    "Shifts",
    "ShmueliFeitelson",
    "SimilarPauses",
    "SiteModel",
    "SiteUser",
    "Switch",
    "Think",
    "ThinkTime",
    "Trigger",
    "Units",
    "User",
    "WeekHours",
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
    "response_time",
    "user_graph",
]
