"""Settings in TOML files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from environment.errors import QuantityError


def read_toml(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the values in a TOML file, and its bytes.

    Raises
    ------
    QuantityError
        When it cannot be read or is no TOML.
    """
    try:
        content = path.read_bytes()
        return tomllib.loads(content.decode("utf-8")), content
    except OSError as error:
        raise QuantityError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QuantityError(f"{path}: not TOML: {error}") from error
