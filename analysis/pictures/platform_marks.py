"""Changes of the platform as numbered marks on pictures over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcrowd.analysis.run import Run
from hpcrowd.environment.clock import Clock, second_of
from hpcrowd.environment.errors import QuantityError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Most marks that are drawn and listed; later ones are not.
MOST = 12

#: Settings with begin and end, of the changes that last for a time.
SPANS = {"maintain": ("start", "end"), "down": ("at", "until")}


class Mark(NamedTuple):
    """A change of the platform."""

    begin: int  #: s
    end: int  #: s; equal to ``begin`` for an instant change
    text: str  #: what changed, in words


def marks_of(run: Run) -> list[Mark]:
    """Return the changes of the platform whose time is known, in order of time.

    Sizes, speeds and schedulers come from the run; maintenance and planned outages come from the
    configuration. Random failures are too many to be marked.
    """
    found = []
    for name, account in run.parts["platform"].account.items():
        for at, before, after in account.get("sizes", ()):
            found.append(Mark(at, at, f"{name}: {before:,} to {after:,} processors"))
        for at, factor in account.get("speeds", ()):
            found.append(Mark(at, at, f"{name}: speed {factor:g}x"))
        for at, scheduler in account.get("schedulers", ()):
            found.append(Mark(at, at, f"{name}: scheduler {scheduler}"))
    for name, begin, end, count in asked_outages(run):
        what, back = "maintenance", ""
        if count is not None:
            what, back = f"{count:,} processors down", "" if end is None else ", and up again"
        found.append(Mark(begin, begin if end is None else end, f"{name}: {what}{back}"))
    return sorted(found)


def draw_marks(panels: Sequence[Axes], run: Run) -> None:
    """Draw the marks of a run on panels over time, numbered as in :func:`marks_of`."""
    marks = marks_of(run)[:MOST]
    line: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "#555555", "linewidth": 0.6}
    for axes in panels:
        left, right = axes.get_xlim()
        for number, mark in enumerate(marks, 1):
            begin, end = max(mark.begin, left), min(mark.end, right)
            if mark.begin > right or mark.end < left:
                continue
            if end > begin:
                axes.axvspan(
                    begin, end, facecolor="#dddddd", alpha=0.5, hatch="///", edgecolor="#999999",
                    linewidth=0,
                )  # fmt: skip
            else:
                axes.axvline(begin, **line)
            axes.annotate(
                str(number), (begin, 1), (2, -3), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", fontsize=7.5, bbox=box | {"pad": 1.2},
            )  # fmt: skip


def asked_outages(run: Run) -> Iterator[tuple[str, int, int | None, int | None]]:
    """Yield cluster, begin, end and processors of each configured outage with a time.

    Processors None means all, as in maintenance; end None means that they stay down. Random
    failures are not included.
    """
    asked = run.configuration.get("platform") or {}
    for change in asked.get("changes", ()) if isinstance(asked, dict) else ():
        if change.get("do") not in SPANS:
            continue
        begin, end = (_second(change.get(key), run.clock) for key in SPANS[change["do"]])
        if begin is not None:
            count = None if change["do"] == "maintain" else int(change.get("processors", 1))
            yield change.get("cluster", "home"), begin, end, count


def _second(moment: Any, clock: Clock) -> int | None:
    """Return a moment of a configuration as a second of the run; None if it is not given."""
    if moment is None or isinstance(moment, int):
        return moment
    try:
        return second_of(datetime.fromisoformat(str(moment)), clock)
    except (ValueError, QuantityError):
        return None
