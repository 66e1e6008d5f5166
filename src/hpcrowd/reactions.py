"""Reactions of users: what they do about a job, when they do it, and the accounts of it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agents.behaviours.cut import Cut as Cut
    from .agents.behaviours.energy.sufficiency import Degrade as Degrade
    from .agents.behaviours.energy.sufficiency import Reconfigure as Reconfigure
    from .agents.behaviours.energy.sufficiency import Renounce as Renounce
    from .agents.behaviours.energy.triggers import Budget as Budget
    from .agents.behaviours.energy.triggers import OnSignal as OnSignal
    from .agents.behaviours.on_nodes import AtLimit as AtLimit
    from .agents.behaviours.on_nodes import FairShareBelow as FairShareBelow
    from .agents.behaviours.on_nodes import FewerGpus as FewerGpus
    from .agents.behaviours.on_nodes import LessMemory as LessMemory
    from .agents.behaviours.on_nodes import LessTime as LessTime
    from .agents.behaviours.on_nodes import SwitchPartition as SwitchPartition
    from .agents.behaviours.parts import Note as Note
    from .agents.behaviours.parts import Reaction as Reaction
    from .agents.behaviours.parts import Trigger as Trigger
    from .agents.behaviours.reactions import Delay as Delay
    from .agents.behaviours.reactions import Intention as Intention
    from .agents.behaviours.reactions import LookAgain as LookAgain
    from .agents.behaviours.reactions import Response as Response
    from .agents.behaviours.reactions import Switch as Switch
    from .agents.behaviours.triggers import Always as Always
    from .agents.behaviours.triggers import During as During
    from .agents.behaviours.triggers import ExpectedWait as ExpectedWait
    from .agents.behaviours.triggers import QueueLonger as QueueLonger
    from .agents.behaviours.triggers import RecentWaits as RecentWaits
    from .agents.behaviours.triggers import WeekHours as WeekHours
    from .analysis.accounts.reactions import account as account
    from .analysis.accounts.reactions import notes_of as notes_of
    from .scenarios.kinds.part_files import reaction_from as reaction_from
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
