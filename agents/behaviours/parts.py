"""The parts that behaviours are made of, by name; a new part is its class and an entry here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcrowd.environment.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpcrowd.agents.behaviours.activity import Activity
    from hpcrowd.agents.behaviours.reactions import Response
    from hpcrowd.agents.behaviours.think import Think
    from hpcrowd.agents.behaviours.triggers import Trigger
    from hpcrowd.agents.behaviours.when import When

#: Parts that decide which work comes next; each is made from recorded work.
WHEN: Registry[type[When]] = Registry(
    {
        "recorded": "hpcrowd.agents.behaviours.when:Recorded",
        "sessions": "hpcrowd.agents.behaviours.when:SessionGraph",
        "batches": "hpcrowd.agents.behaviours.when:BatchOrder",
    }
)

#: Parts that decide about pauses.
THINK: Registry[type[Think]] = Registry(
    {
        "recorded": "hpcrowd.agents.behaviours.think:RecordedPauses",
        "linear": "hpcrowd.agents.behaviours.think:LinearThink",
        "own": "hpcrowd.agents.behaviours.think:OwnPauses",
        "continuation": "hpcrowd.agents.behaviours.think:Continuation",
    }
)

#: Parts that decide when users are at work. Fixed hours have no name: they are given as such.
WINDOWS: Registry[type[Activity]] = Registry(
    {
        "always": "hpcrowd.agents.behaviours.activity:Always",
        "fitted": "hpcrowd.agents.behaviours.profiles:ActiveTime",
        "shifts": "hpcrowd.agents.behaviours.activity:WorkPattern",
        "sessions": "hpcrowd.agents.behaviours.activity:RecordedSessions",
    }
)

#: What users do instead of submitting as usual.
RESPONSES: Registry[type[Response]] = Registry(
    {
        "delay": "hpcrowd.agents.behaviours.reactions:Delay",
        "degrade": "hpcrowd.agents.behaviours.reactions:Degrade",
        "reconfigure": "hpcrowd.agents.behaviours.reactions:Reconfigure",
        "renounce": "hpcrowd.agents.behaviours.reactions:Renounce",
        "switch": "hpcrowd.agents.behaviours.reactions:Switch",
    }
)

#: Triggers of reactions by name, each in its forms.
TRIGGERS: Registry[Sequence[type[Trigger]]] = Registry(
    {
        "during": "hpcrowd.agents.behaviours.triggers:DURING",
        "patience": "hpcrowd.agents.behaviours.triggers:PATIENCE",
        "signal": "hpcrowd.agents.behaviours.triggers:SIGNAL",
    }
)
