"""Named behaviours: one for every published model, as a combination of parts.

================== ===================== ================== =================== ==================
name               when                  think              window              source
================== ===================== ================== =================== ==================
rigid              recorded              -                  -                   Madon 2024, Def. 8
think-time         session graph         recorded           -                   Madon 2024, 4.2
adjusted           batch order           recorded           -                   Zakay 2015, VII-A
distribution       batch order           stay or break      drawn hours, days   Zakay 2015, VII-B
fluid              batch order           own, in sessions   recorded sessions   Zakay 2015, VII-C
linear             batch order           line, fitted       -                   Schlagkamp 2015
================== ===================== ================== =================== ==================

A preset is a function of the recorded work; what it fits or draws from is taken from ``fit``,
which is the same work unless another is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.activity import RecordedSessions, Shifts, WorkPattern
from agents.behaviours import Rigid, ThinkTime
from agents.composed import Composed
from agents.think import Continuation, ContinuationLaw, LinearThink, OwnPauses
from agents.when import BatchOrder

if TYPE_CHECKING:
    from agents.user import Behaviour, ReplayUser
    from agents.work import Work


def rigid(work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
    """Recorded submissions."""
    return Rigid()


def think_time(work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
    """Recorded think times between sessions."""
    return ThinkTime(work)


def adjusted(work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
    """Recorded think times and inter-arrival times between batches."""
    return Composed(BatchOrder(work))


def distribution(
    work: Work,
    fit: Work | None = None,
    shifts: Shifts | None = None,
    law: ContinuationLaw | None = None,
) -> Behaviour[ReplayUser]:
    """Hours and days by lot; sessions go on by the response time."""
    return Composed(
        BatchOrder(work),
        Continuation((fit or work).by_batch, law),
        WorkPattern(shifts),
        waits=True,
    )


def fluid(work: Work, fit: Work | None = None) -> Behaviour[ReplayUser]:
    """Batches flow between recorded session windows."""
    units = (fit or work).by_batch
    return Composed(BatchOrder(work), OwnPauses(units), RecordedSessions(units), waits=True)


def linear(
    work: Work, fit: Work | None = None, think: LinearThink | None = None
) -> Behaviour[ReplayUser]:
    """Think times linear in the response time; the line is fitted unless given."""
    return Composed(BatchOrder(work), think or LinearThink.fit((fit or work).by_batch))


#: Presets by the names that users give.
PRESETS = {
    "rigid": rigid,
    "think-time": think_time,
    "adjusted": adjusted,
    "distribution": distribution,
    "fluid": fluid,
    "linear": linear,
}
