"""Pictures and tables of the page, each with what saves it as a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import solara

from hpcrowd.scenarios.inspector.desk import Desk, held
from hpcrowd.scenarios.inspector.exports import TYPES, image_for_browser

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: Rows of a table on one page of it.
ROWS = 10


@solara.component_vue("panel.vue")
def _Panel(
    name: str,
    title: str,
    alt: str,
    image: str,
    kinds: list[str],
    event_save: Callable[[str], None],
) -> None:
    """Show an image with buttons."""


@solara.component_vue("saved.vue")
def _Saved(file: dict[str, Any]) -> None:
    """Save a file in the browser, when there is another one."""


@solara.component
def Saved(desk: Desk) -> None:
    """Hand the browser what is saved on the page."""
    _Saved(file=desk.file.value)


@solara.component_vue("table.vue")
def _Table(
    name: str,
    title: str,
    headers: list[dict[str, Any]],
    items: list[dict[str, Any]],
    key_name: str,
    chosen: Any,
    rows: int,
    searchable: bool,
    picks: bool,
    nothing: str,
    kinds: list[str],
    event_save: Callable[[str], None],
    event_pick: Callable[[Any], None],
) -> None:
    """Show a table with a search."""


@solara.component
def Picture(
    desk: Desk,
    name: str,
    title: str,
    draw: Callable[[], Figure],
    table: Callable[[], pd.DataFrame],
    version: Hashable,
) -> None:
    """A picture that is drawn anew when its version changes.

    Parameters
    ----------
    desk
        Of the page.
    name
        Of the panel; files that are saved are called so.
    title
        Above the picture.
    draw, table
        What is shown, and what the picture is made of; called when they are needed.
    version
        Changes when the picture does.
    """
    image = solara.use_memo(lambda: held(desk, lambda: image_for_browser(draw())), [version])
    _Panel(
        name=name,
        title=title,
        alt=title,
        image=image,
        kinds=list(TYPES),
        event_save=lambda kind: desk.save(name, kind, draw, table),
    )


@solara.component
def Table(
    desk: Desk,
    name: str,
    title: str,
    headers: list[dict[str, Any]],
    items: list[dict[str, Any]],
    draw: Callable[[], Figure],
    table: Callable[[], pd.DataFrame],
    *,
    key_name: str,
    chosen: Any = None,
    rows: int = ROWS,
    searchable: bool = False,
    on_pick: Callable[[Any], None] | None = None,
    nothing: str = "Nothing.",
) -> None:
    """A table that can be sorted.

    Parameters
    ----------
    desk, name, title
        As of :func:`Picture`.
    headers
        Of the columns: ``text`` and ``value``, the key in ``items``.
    items
        The rows; where ``KEY_text`` is there it is shown, and sorted by ``KEY``.
    draw, table
        A picture of it and all of it, for files.
    key_name, chosen
        Which key tells rows apart, and that of the row that is marked.
    rows
        How many on a page.
    searchable
        Whether it has a field to search.
    on_pick
        Called with the key of a row that is clicked.
    nothing
        What stands there while there are no rows.
    """
    _Table(
        name=name,
        title=title,
        headers=headers,
        items=items,
        key_name=key_name,
        chosen=chosen,
        rows=rows,
        searchable=searchable,
        picks=on_pick is not None,
        nothing=nothing,
        kinds=list(TYPES),
        event_save=lambda kind: desk.save(name, kind, draw, table),
        event_pick=on_pick or (lambda key: None),
    )
