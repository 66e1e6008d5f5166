"""The parts that behaviours are made of, by name; a new part is its class and an entry here."""

from __future__ import annotations

from hpcrowd.agents.behaviours import activity, profiles, reactions, think, triggers, when

#: Parts that decide which work comes next; each is made from recorded work.
WHEN: dict[str, type[when.When]] = {
    part.name: part for part in (when.Recorded, when.SessionGraph, when.BatchOrder)
}

#: Parts that decide about pauses.
THINK: dict[str, type[think.Think]] = {
    part.name: part
    for part in (think.RecordedPauses, think.LinearThink, think.OwnPauses, think.Continuation)
}

#: Parts that decide when users are at work; those that need no settings by name.
ACTIVITIES: tuple[type[activity.Activity], ...] = (
    activity.Always,
    activity.SameWindow,
    profiles.ActiveTime,
    activity.WorkPattern,
    activity.RecordedSessions,
)
WINDOWS = {part.name: part for part in ACTIVITIES if not part.given}

#: What users do instead of submitting as usual.
RESPONSES: dict[str, type[reactions.Response]] = {
    part.response: part
    for part in (
        reactions.Delay,
        reactions.Degrade,
        reactions.Reconfigure,
        reactions.Renounce,
        reactions.Switch,
    )
}

#: Triggers of reactions, by name; several may be forms of one.
TRIGGER_CLASSES: tuple[type[triggers.Trigger], ...] = (
    triggers.During,
    triggers.WeekHours,
    triggers.Patience,
    triggers.OnSignal,
)
TRIGGERS = {
    one.when: [form for form in TRIGGER_CLASSES if form.when == one.when] for one in TRIGGER_CLASSES
}
