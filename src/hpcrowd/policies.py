"""Scheduling policies, what they see of the jobs, and why jobs wait."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.schedulers.base import EndedJob as EndedJob
    from .environment.schedulers.base import Look as Look
    from .environment.schedulers.base import ReasonCode as ReasonCode
    from .environment.schedulers.base import RunningJob as RunningJob
    from .environment.schedulers.base import WaitingJob as WaitingJob
    from .environment.schedulers.base import WaitingReason as WaitingReason
    from .environment.schedulers.easy import EASY as EASY
    from .environment.schedulers.names import parse_scheduler as parse_scheduler
    from .environment.schedulers.order import FCFS as FCFS
    from .environment.schedulers.order import LJF as LJF
    from .environment.schedulers.order import SJF as SJF
    from .environment.schedulers.order import Order as Order
    from .environment.schedulers.policies.adaptive import Adaptive as Adaptive
    from .environment.schedulers.policies.conservative import Conservative as Conservative
    from .environment.schedulers.policies.conservative import Selective as Selective
    from .environment.schedulers.policies.conservative import (
        SelectiveCategorized as SelectiveCategorized,
    )
    from .environment.schedulers.policies.fair_share import FairShare as FairShare
    from .environment.schedulers.policies.multi_queue import MultiQueue as MultiQueue
    from .environment.schedulers.policies.priority import F1 as F1
    from .environment.schedulers.policies.priority import F2 as F2
    from .environment.schedulers.policies.priority import F3 as F3
    from .environment.schedulers.policies.priority import F4 as F4
    from .environment.schedulers.policies.priority import WFP3 as WFP3
    from .environment.schedulers.policies.priority import Creasy as Creasy
    from .environment.schedulers.policies.priority import Multifactor as Multifactor
    from .environment.schedulers.policies.priority import Priority as Priority
    from .environment.schedulers.policies.priority import Queue as Queue
    from .environment.schedulers.policies.priority import Unicef as Unicef
    from .environment.waiting_reasons import reasons_at as reasons_at
    from .environment.waiting_reasons import reasons_of as reasons_of
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
