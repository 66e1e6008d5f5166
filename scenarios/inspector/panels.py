"""Pictures and tables of the page, each with what saves it as a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import solara

from scenarios.inspector.exports import (
    figure_svg,
    file_for_browser,
    frame_csv,
    image_for_browser,
)

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
    file: dict[str, Any],
    event_save: Callable[[str], None],
) -> None:
    """Show an image with buttons."""


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
    file: dict[str, Any],
    event_save: Callable[[str], None],
    event_pick: Callable[[Any], None],
) -> None:
    """Show a table with a search."""


@solara.component
def Picture(
    name: str,
    title: str,
    draw: Callable[[], Figure],
    table: Callable[[], pd.DataFrame],
    version: Hashable,
    hold: Callable[[], AbstractContextManager[object]],
) -> None:
    """A picture that is drawn anew when its version changes.

    Parameters
    ----------
    name
        Of the panel; files that are saved are called so.
    title
        Above the picture.
    draw, table
        What is shown, and what the picture is made of; called when they are needed.
    version
        Changes when the picture does.
    hold
        Keeps what is drawn as it is.
    """

    def drawn() -> str:
        with hold():
            return image_for_browser(draw())

    image = solara.use_memo(drawn, [version])
    file, set_file = solara.use_state({})

    def save(kind: str) -> None:
        if kind not in ("csv", "svg"):
            return _save_image(image)
        with hold():
            content = frame_csv(table()) if kind == "csv" else figure_svg(draw())
        set_file(file_for_browser(name, kind, content, file.get("serial", 0) + 1))
        return None

    def _save_image(address: str) -> None:
        found = {"name": f"{name}.png", "mime": "image/png", "data": address.split(",", 1)[1]}
        set_file({**found, "serial": file.get("serial", 0) + 1})

    _Panel(
        name=name,
        title=title,
        alt=title,
        image=image,
        kinds=["png", "svg", "csv"],
        file=file,
        event_save=save,
    )


@solara.component
def Table(
    name: str,
    title: str,
    headers: list[dict[str, Any]],
    items: list[dict[str, Any]],
    table: Callable[[], pd.DataFrame],
    *,
    key_name: str,
    chosen: Any = None,
    hold: Callable[[], AbstractContextManager[object]],
    rows: int = ROWS,
    searchable: bool = False,
    on_pick: Callable[[Any], None] | None = None,
    nothing: str = "Nothing.",
) -> None:
    """A table that can be sorted.

    Parameters
    ----------
    name, title
        As of :func:`Picture`.
    headers
        Of the columns: ``text`` and ``value``, the key in ``items``.
    items
        The rows; where ``KEY_text`` is there it is shown, and sorted by ``KEY``.
    table
        All of it, for a file.
    key_name, chosen
        Which key tells rows apart, and that of the row that is marked.
    hold
        Keeps what is shown as it is.
    rows
        How many on a page.
    searchable
        Whether it has a field to search.
    on_pick
        Called with the key of a row that is clicked.
    nothing
        What stands there while there are no rows.
    """
    file, set_file = solara.use_state({})

    def save(kind: str) -> None:
        serial = file.get("serial", 0) + 1
        with hold():
            content = frame_csv(table())
        set_file(file_for_browser(name, "csv", content, serial))

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
        file=file,
        event_save=save,
        event_pick=on_pick or (lambda key: None),
    )
