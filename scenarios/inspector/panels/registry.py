"""The list of all panels.

A panel is a function of a run and of what the page asks to see. What it returns is turned to JSON
by :mod:`.packing`; :mod:`.saving` makes files of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.inspector.panels.asked import Asked
from hpcrowd.scenarios.inspector.panels.cluster import load_panel, queue_panel, submissions_panel
from hpcrowd.scenarios.inspector.panels.forecast import forecast_panel
from hpcrowd.scenarios.inspector.panels.gantt import gantt_panel
from hpcrowd.scenarios.inspector.panels.numbers import numbers
from hpcrowd.scenarios.inspector.panels.packing import to_json
from hpcrowd.scenarios.inspector.panels.power import energy_numbers, power_panel
from hpcrowd.scenarios.inspector.panels.user import user_panel
from hpcrowd.scenarios.inspector.panels.users import users_panel
from hpcrowd.scenarios.inspector.panels.waits import blockers_panel, delays_panel
from hpcrowd.scenarios.inspector.subjects.course import Course

#: What each panel shows, by the name that the page uses.
PANELS: Mapping[str, Callable[[Course, Asked], dict[str, Any]]] = {
    "numbers": lambda course, asked: numbers(course.moment(), more=energy_numbers(course)),
    "load": load_panel,
    "power": power_panel,
    "submissions": submissions_panel,
    "gantt": gantt_panel,
    "queue": queue_panel,
    "users": users_panel,
    "user": user_panel,
    "blockers": blockers_panel,
    "delays": delays_panel,
    "forecast": forecast_panel,
}


def panels_json(course: Course, message: Mapping[str, Any]) -> bytes:
    """Return the panels that the page asks for as a JSON object, each by its name.

    Parameters
    ----------
    course
        The run.
    message
        The request of the page, see :class:`Asked`; ``panels`` names the panels.
    """
    asked = Asked.of(message, course.now)
    parts = [b'"now":%d' % course.now]
    for name in message["panels"]:
        try:
            content = to_json(PANELS[name](course, asked))
        except HpcrowdError as error:
            content = to_json({"error": str(error)})
        parts.append(b'"%s":%s' % (name.encode(), content))
    return b"{" + b",".join(parts) + b"}"
