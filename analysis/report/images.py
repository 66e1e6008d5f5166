"""The pictures of a report as images in the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcrowd.analysis import html
from hpcrowd.analysis.pictures.plots import figure_png, run_name
from hpcrowd.analysis.report.figures import RUN_FIGURES
from hpcrowd.analysis.run import Run

#: Called before each picture with its title.
Tell = Callable[[str], Any]

#: Picture pixels per screen pixel; 2 is sharp in print, too.
SCALE = 2


class Images:
    """How a report shows its pictures: each as an image.

    Attributes
    ----------
    tell
        Called before each picture with its title.
    lead
        Sentences for the top of the page.
    """

    lead: tuple[str, ...] = ()

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def of(self, name: str, run: Run) -> list[str]:
        """Return a picture of :data:`RUN_FIGURES` as HTML; empty if it does not apply."""
        one = RUN_FIGURES[name]
        if not one.shown(run):
            return []
        self.tell(f"{run.label}: {one.title}")
        png = figure_png(one.draw(run), SCALE)
        return [html.figure_of(png, one.told(run), f"{one.title}, {run_name(run)}")]

    def scripts(self) -> list[str]:
        """Return the scripts that the pictures need."""
        return []
