from .activity import Activity, RecordedSessions, SameWindow, Shifts, WorkPattern
from .archetypes import Debugger, LargeRuns, NightScript, ParameterSweeper, demo_population
from .attendance import Attendance
from .behaviours import Rigid, ThinkTime
from .casting import Casting
from .component_users import AsRecorded, ClosedLoop, ComponentUser, Member
from .components import Component, Pool
from .composed import Composed
from .consequences import Consequences
from .decision_words import Decision, Decisions
from .decisions import DecisionLog
from .empirical import Empirical, Habits
from .generated import GeneratedUser, Generating, LogNormal
from .graph import Dependencies, find_dependencies, longest_paths, user_graph
from .heldout import HeldOut, OpenOrder, PausePool, SimilarPauses
from .made_up import ComponentWork, GroupWork, Living, SiteWork
from .mixture import Mixture, Part
from .office import Office
from .openness import Openness, PoolRules
from .population import add_users
from .presets import PRESETS, Fitted, Recipe
from .profiles import ActiveTime, Profiles, WeeklyProfile
from .reactions import Intention, Note, Reaction
from .repeated import Chains
from .responses import Degrade, Delay, Reconfigure, Renounce, Response, Switch
from .satisfaction import Alea, Formula, Habit, Minding, Requested
from .semi_open import Roster, add_members, draw_roster
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
from .visits import Happening, Visit, Visits
from .when import BatchOrder, Reason, Recorded, Release, SessionGraph, When
from .windows import ActivityWindow, WeeklyWindow
from .work import Work

__all__ = [
    "PRESETS",
    "ActiveTime",
    "Activity",
    "ActivityWindow",
    "Alea",
    "AsRecorded",
    "Attendance",
    "BatchOrder",
    "Behaviour",
    "Casting",
    "Chains",
    "ClosedLoop",
    "Component",
    "ComponentUser",
    "ComponentWork",
    "Composed",
    "Consequences",
    "Continuation",
    "ContinuationLaw",
    "Debugger",
    "Decision",
    "DecisionLog",
    "Decisions",
    "Degrade",
    "Delay",
    "Dependencies",
    "Doing",
    "During",
    "Empirical",
    "Fitted",
    "Formula",
    "GeneratedUser",
    "Generating",
    "GroupWork",
    "Habit",
    "Habits",
    "Happening",
    "HeldOut",
    "Intention",
    "LargeRuns",
    "LinearThink",
    "Living",
    "LogNormal",
    "Member",
    "Minding",
    "Mixture",
    "NightScript",
    "Note",
    "Office",
    "OnSignal",
    "OpenOrder",
    "Openness",
    "OwnPauses",
    "ParameterSweeper",
    "Part",
    "Patience",
    "Pause",
    "PausePool",
    "Pool",
    "PoolRules",
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
    "Requested",
    "Response",
    "Rigid",
    "Roster",
    "SameWindow",
    "SessionDefinition",
    "SessionGraph",
    "Sessions",
    "Shifts",
    "ShmueliFeitelson",
    "SimilarPauses",
    "SiteModel",
    "SiteUser",
    "SiteWork",
    "Switch",
    "Think",
    "ThinkTime",
    "Trigger",
    "Units",
    "User",
    "Visit",
    "Visits",
    "WeekHours",
    "WeeklyProfile",
    "WeeklyWindow",
    "When",
    "Work",
    "WorkPattern",
    "add_members",
    "add_users",
    "demo_population",
    "draw_roster",
    "find_dependencies",
    "find_sessions",
    "longest_paths",
    "response_time",
    "user_graph",
]
