"""What is on the page as files: PNG, SVG, CSV."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.pictures.plots import figure_png

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: Types of the files by their ending.
TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv"}


def figure_svg(figure: Figure) -> bytes:
    """Return a figure as the bytes of an SVG file, the same for the same figure."""
    import matplotlib

    buffer = BytesIO()
    # Names of parts are random otherwise.
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
        What it is of; what is no letter, number, dot or dash becomes a dash.
    kind
        Its ending: png, svg or csv.
    content
        Its bytes.
    serial
        Makes each file another, so that one can be saved twice.
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
