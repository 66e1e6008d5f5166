from .behaviours.activity import (
    Activity,
    ActivityWindow,
    RecordedSessions,
    SameWindow,
    Shifts,
    WeeklyWindow,
    WorkPattern,
)
from .behaviours.composed import Composed, Rigid, ThinkTime
from .behaviours.decisions import Decision, DecisionLog, Decisions
from .behaviours.energy.budget import Budget
from .behaviours.energy.sufficiency import Degrade, Reconfigure, Renounce
from .behaviours.heldout import HeldOut, OpenOrder, PausePool, SimilarPauses
from .behaviours.machine.requests import FewerGpus, LessMemory, LessTime, SwitchPartition
from .behaviours.machine.standing import AtLimit, FairShareBelow
from .behaviours.patience import Patience
from .behaviours.profiles import ActiveTime, Fitted, Profiles, WeeklyProfile
from .behaviours.reactions import (
    Delay,
    Intention,
    LookAgain,
    Note,
    Reaction,
    Response,
    Switch,
)
from .behaviours.tasks.cut import Cut
from .behaviours.think import (
    Continuation,
    ContinuationLaw,
    LinearThink,
    OwnPauses,
    Pause,
    RecordedPauses,
    Think,
    response_time,
)
from .behaviours.triggers import (
    Always,
    During,
    ExpectedWait,
    OnSignal,
    QueueLonger,
    RecentWaits,
    Trigger,
    WeekHours,
)
from .behaviours.user import Behaviour, ReplayUser, User
from .behaviours.user_graph import UserGraph
from .behaviours.when import BatchOrder, Reason, Recorded, Release, SessionGraph, When
from .generative.archetypes import (
    Debugger,
    LargeRuns,
    NightScript,
    Office,
    ParameterSweeper,
    demo_population,
)
from .generative.empirical import Attendance, Empirical, Habits
from .generative.generated import GeneratedUser, Generating, LogNormal
from .generative.shmueli import Doing, ShmueliFeitelson, SiteModel, SiteUser
from .populations.component_users import AsRecorded, ClosedLoop, ComponentUser, Member
from .populations.components import Component, Pool
from .populations.given import give_behaviour
from .populations.made_up import ComponentWork, GroupWork, Living, SiteWork
from .populations.mixture import Mixture, Part
from .populations.openness import Consequences, Happening, Openness, PoolRules, Visit, Visits
from .populations.population import Casting, add_users
from .populations.satisfaction import Alea, Formula, Habit, Minding, Requested
from .populations.semi_open import Roster, add_members, draw_roster
from .presets import PRESETS, Recipe
from .work.graph import Dependencies, find_dependencies, longest_paths, user_graph
from .work.recorded import Work
from .work.repeated import Chains
from .work.sessions import SessionDefinition, Sessions, find_sessions
from .work.units import Units

__all__ = [
    "PRESETS",
    "ActiveTime",
    "Activity",
    "ActivityWindow",
    "Alea",
    "Always",
    "AsRecorded",
    "AtLimit",
    "Attendance",
    "BatchOrder",
    "Behaviour",
    "Budget",
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
    "Cut",
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
    "ExpectedWait",
    "FairShareBelow",
    "FewerGpus",
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
    "LessMemory",
    "LessTime",
    "LinearThink",
    "Living",
    "LogNormal",
    "LookAgain",
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
    "QueueLonger",
    "Reaction",
    "Reason",
    "RecentWaits",
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
    "SwitchPartition",
    "Think",
    "ThinkTime",
    "Trigger",
    "Units",
    "User",
    "UserGraph",
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
    "give_behaviour",
    "longest_paths",
    "response_time",
    "user_graph",
]
