"""A view as the query of an address, and back: ``?tab=user&user=17&at=864000&a.nodes=2x``.

========== =====================================================================================
key        meaning
========== =====================================================================================
tab        which part of the page is shown
user       the user that is chosen
at         how far the run is, s since the origin
span       days that pictures over time show, 0 for the whole run
two        whether a second run stands beside the first
a.NAME     a setting of the first run, b.NAME of the second
========== =====================================================================================

Whoever follows a link sees the same: runs are repeated from their seed up to that second. A link
comes from outside, so everything in it is checked; what makes no sense is told in one line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from hpcrowd.environment.errors import QuantityError

#: Parts of the page.
TABS = ("cluster", "users", "user")

#: Days that pictures over time may show; 0 is the whole run so far.
SPANS = (1, 7, 28, 0)

#: Names of the two runs.
RUNS = ("a", "b")

#: Longest query that is read, characters.
LONGEST = 2000

#: Furthest moment of a link, s: over thirty thousand years.
LAST_MOMENT = 10**12


@dataclass(frozen=True)
class View:
    """What a page shows.

    Attributes
    ----------
    tab, span
        See the module.
    user
        None while nobody is chosen.
    at
        s since the origin.
    two
        Whether there are two runs.
    settings
        What readers have set, by run, then by name.
    """

    tab: str = TABS[0]
    user: int | None = None
    at: int = 0
    span: int = 7
    two: bool = False
    settings: dict[str, dict[str, str]] = field(default_factory=dict)


def parse_view(query: str | None) -> View:
    """Return the view that a query describes; the first one when there is no query.

    Raises
    ------
    QuantityError
        When something in it makes no sense.
    """
    if not query:
        return View()
    if len(query) > LONGEST:
        raise QuantityError(f"link of {len(query)} characters: at most {LONGEST}")
    found = dict(parse_qsl(query.removeprefix("?")))
    tab = found.pop("tab", TABS[0])
    if tab not in TABS:
        raise QuantityError(f"link: tab {tab[:40]!r}: not known; choose {', '.join(TABS)}")
    user = _number(found, "user", None)
    at = _number(found, "at", 0)
    span = _number(found, "span", 7)
    two = _number(found, "two", 0)
    if span not in SPANS:
        raise QuantityError(f"link: span {span}: choose {', '.join(map(str, SPANS))} days")
    settings: dict[str, dict[str, str]] = {}
    for key, value in found.items():
        run, dot, name = key.partition(".")
        if run not in RUNS or not dot or not name:
            raise QuantityError(f"link: {key[:40]!r}: not known")
        settings.setdefault(run, {})[name] = value
    return View(tab, user, at or 0, span, bool(two), settings)


def _number(found: dict[str, str], name: str, default: int | None) -> int | None:
    text = found.pop(name, None)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 13 or int(text) > LAST_MOMENT:
        raise QuantityError(f"link: {name} {text[:40]!r}: must be a whole number, 0 or more")
    return int(text)


def view_query(view: View) -> str:
    """Return the query that describes a view, without a question mark; see :func:`parse_view`."""
    parts: list[tuple[str, str | int]] = [("tab", view.tab)]
    if view.user is not None:
        parts.append(("user", view.user))
    parts += [("at", view.at), ("span", view.span)]
    if view.two:
        parts.append(("two", 1))
    for run in RUNS:
        parts += [(f"{run}.{name}", value) for name, value in view.settings.get(run, {}).items()]
    return urlencode(parts)
