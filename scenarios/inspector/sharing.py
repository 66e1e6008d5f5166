"""Views of the page as addresses, and files to save (PNG, SVG, CSV).

A view is the query of an address: ``?tab=user&user=17&at=864000&a.processors=2x``.

========== =====================================================================================
key        meaning
========== =====================================================================================
tab        which part of the page is shown
user       the user that is chosen, by number or name
at         the time of the run, s since the origin
span       days that pictures over time show, 0 for the whole run
two        whether there is a second run
a.NAME     a setting of the first run, b.NAME of the second
========== =====================================================================================

A link shows everyone the same: runs are repeated from their seed up to that second. A link comes
from outside, so everything in it is checked; an error is reported in one line.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.errors import QuantityError, not_one_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
        Number or name; None if no user is chosen.
    at
        s since the origin.
    two
        Whether there are two runs.
    settings
        Settings from the reader, by run, then by name.
    """

    tab: str = TABS[0]
    user: int | str | None = None
    at: int = 0
    span: int = 7
    two: bool = False
    settings: dict[str, dict[str, str]] = field(default_factory=dict)


def parse_view(query: str | None) -> View:
    """Return the view that a query describes; the first one when there is no query.

    Raises
    ------
    QuantityError
        When something in it is not valid.
    """
    if not query:
        return View()
    if len(query) > LONGEST:
        raise QuantityError(f"link of {len(query)} characters: at most {LONGEST}")
    found = dict(parse_qsl(query.removeprefix("?")))
    tab = found.pop("tab", TABS[0])
    if tab not in TABS:
        raise QuantityError(f"link: tab {tab[:40]!r}: {not_one_of(tab, TABS)}")
    user: Any = found.pop("user", None)
    if user is not None and user.removeprefix("-").isdecimal():
        user = _number({"user": user}, "user", None)
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


#: Types of the files by their ending.
TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv"}


def figure_svg(figure: Figure) -> bytes:
    """Return a figure as the bytes of an SVG file, the same for the same figure."""
    import matplotlib

    buffer = BytesIO()
    # Otherwise the names of parts are random.
    with matplotlib.rc_context({"svg.hashsalt": "hpcrowd"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def frame_csv(frame: pd.DataFrame) -> bytes:
    """Return a table as the bytes of a CSV file."""
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()


def exported(kind: str, draw: Callable[[], Figure], table: Callable[[], pd.DataFrame]) -> bytes:
    """Return a view as the bytes of a file.

    Parameters
    ----------
    kind
        Its ending, of :data:`TYPES`.
    draw, table
        Make its picture and its table; only the one that is needed is called.
    """
    if kind == "csv":
        return frame_csv(table())
    return figure_svg(draw()) if kind == "svg" else figure_png(draw())


def file_for_browser(name: str, kind: str, content: bytes, serial: int) -> dict[str, Any]:
    """Return a file as the page hands it to the browser.

    Parameters
    ----------
    name
        Its name; characters other than letters, numbers, dots and dashes become dashes.
    kind
        Its ending: png, svg or csv.
    content
        Its bytes.
    serial
        Makes each file distinct, so that the same one can be saved twice.
    """
    safe = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "hpcrowd"
    return {
        "name": f"{safe}.{kind}",
        "mime": TYPES[kind],
        "data": base64.b64encode(content).decode("ascii"),
        "serial": serial,
    }


def image_for_browser(figure: Figure) -> str:
    """Return a figure as the address of an image, its PNG inside."""
    return "data:image/png;base64," + base64.b64encode(figure_png(figure)).decode("ascii")
