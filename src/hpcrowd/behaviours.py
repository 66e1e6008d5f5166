"""What users are made of: when they submit, how long they think, when they are there."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agents.behaviours.activity import Activity as Activity
    from .agents.behaviours.activity import ActivityWindow as ActivityWindow
    from .agents.behaviours.activity import RecordedSessions as RecordedSessions
    from .agents.behaviours.activity import SameWindow as SameWindow
    from .agents.behaviours.activity import Shifts as Shifts
    from .agents.behaviours.activity import WeeklyWindow as WeeklyWindow
    from .agents.behaviours.activity import WorkPattern as WorkPattern
    from .agents.behaviours.composed import Composed as Composed
    from .agents.behaviours.composed import Rigid as Rigid
    from .agents.behaviours.composed import ThinkTime as ThinkTime
    from .agents.behaviours.decisions import Decision as Decision
    from .agents.behaviours.decisions import DecisionLog as DecisionLog
    from .agents.behaviours.decisions import Decisions as Decisions
    from .agents.behaviours.patience import Patience as Patience
    from .agents.behaviours.profiles import ActiveTime as ActiveTime
    from .agents.behaviours.profiles import Fitted as Fitted
    from .agents.behaviours.profiles import Profiles as Profiles
    from .agents.behaviours.profiles import WeeklyProfile as WeeklyProfile
    from .agents.behaviours.think import Continuation as Continuation
    from .agents.behaviours.think import ContinuationLaw as ContinuationLaw
    from .agents.behaviours.think import LinearThink as LinearThink
    from .agents.behaviours.think import OwnPauses as OwnPauses
    from .agents.behaviours.think import Pause as Pause
    from .agents.behaviours.think import RecordedPauses as RecordedPauses
    from .agents.behaviours.think import Think as Think
    from .agents.behaviours.think import response_time as response_time
    from .agents.behaviours.when import BatchOrder as BatchOrder
    from .agents.behaviours.when import Reason as Reason
    from .agents.behaviours.when import Recorded as Recorded
    from .agents.behaviours.when import Release as Release
    from .agents.behaviours.when import SessionGraph as SessionGraph
    from .agents.behaviours.when import When as When
    from .agents.learned.heldout import HeldOut as HeldOut
    from .agents.learned.heldout import OpenOrder as OpenOrder
    from .agents.learned.heldout import PausePool as PausePool
    from .agents.learned.heldout import SimilarPauses as SimilarPauses
    from .agents.presets import PRESETS as PRESETS
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
