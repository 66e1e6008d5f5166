"""Files of single pictures: PNG, SVG or PDF by their suffix, whole or absent, always the same."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import HpcrowdError, QuantityError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Formats by suffix, with what would otherwise change from run to run.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"format": "png", "metadata": {"Software": None}},
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": None}},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Creator": None}},
}

#: Salt of the names inside SVG files, which are random without one.
SALT = "hpcrowd"


def check_picture(path: str | os.PathLike[str], option: str = "picture") -> None:
    """Make sure that a picture may be written, before anything is computed.

    Parameters
    ----------
    path
        The file.
    option
        Who asks for it, for the message.

    Raises
    ------
    HpcrowdError
        When its suffix is not known (QuantityError), it is a folder, or it has no folder that can
        be written.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise QuantityError(
            f"{option} {file}: pictures are {', '.join(FORMATS)}; give the file such a suffix"
        )
    if file.is_dir():
        raise HpcrowdError(f"{option} {file}: is a folder; name a file")
    if not file.parent.is_dir():
        raise HpcrowdError(f"{option} {file}: no folder {file.parent} to write it in")
    try:
        with TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise HpcrowdError(f"{option} {file}: cannot be written: {error.strerror}") from error


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure into a file that appears only when it is complete.

    Parameters
    ----------
    figure
        A figure without a window.
    path
        The file; its suffix says which format.

    Raises
    ------
    HpcrowdError
        When the suffix is not known, or the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    check_picture(path)
    file = Path(path)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    FigureCanvasAgg(figure)
    try:
        with rc_context({"svg.hashsalt": SALT}):
            figure.savefig(temporary, **FORMATS[file.suffix.lower()])
        temporary.replace(file)
    except OSError as error:
        raise HpcrowdError(f"{file}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
