"""The parts that behaviours are made of, by name; a new part is its class and an entry here."""

from __future__ import annotations

from hpcrowd.agents.behaviours.activity import (
    Activity,
    Always,
    RecordedSessions,
    SameWindow,
    WorkPattern,
)
from hpcrowd.agents.behaviours.profiles import ActiveTime
from hpcrowd.agents.behaviours.responses import (
    Degrade,
    Delay,
    Reconfigure,
    Renounce,
    Response,
    Switch,
)
from hpcrowd.agents.behaviours.think import (
    Continuation,
    LinearThink,
    OwnPauses,
    RecordedPauses,
    Think,
)
from hpcrowd.agents.behaviours.triggers import During, OnSignal, Patience, Trigger, WeekHours
from hpcrowd.agents.behaviours.when import BatchOrder, Recorded, SessionGraph, When

#: Parts that decide which work comes next; each is made from recorded work.
WHEN: dict[str, type[When]] = {part.name: part for part in (Recorded, SessionGraph, BatchOrder)}

#: Parts that decide about pauses.
THINK: dict[str, type[Think]] = {
    part.name: part for part in (RecordedPauses, LinearThink, OwnPauses, Continuation)
}

#: Parts that tell when users are at work; those that need no settings by name.
ACTIVITIES: tuple[type[Activity], ...] = (
    Always,
    SameWindow,
    ActiveTime,
    WorkPattern,
    RecordedSessions,
)
WINDOWS = {part.name: part for part in ACTIVITIES if not part.given}

#: What users do instead of submitting as usual.
RESPONSES: dict[str, type[Response]] = {
    part.response: part for part in (Delay, Degrade, Reconfigure, Renounce, Switch)
}

#: What makes them react, and by name, where several may be forms of one.
TRIGGER_CLASSES: tuple[type[Trigger], ...] = (During, WeekHours, Patience, OnSignal)
TRIGGERS = {
    one.when: [form for form in TRIGGER_CLASSES if form.when == one.when] for one in TRIGGER_CLASSES
}
