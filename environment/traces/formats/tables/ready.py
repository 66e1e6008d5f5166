"""Maps of published tables that come with hpcrowd: the TOML files in ``maps``, by name.

The first line of each, a comment, says what it reads.
"""

from __future__ import annotations

from pathlib import Path

#: The files of the maps by name.
READY = {path.stem: path for path in sorted((Path(__file__).parent / "maps").glob("*.toml"))}


def map_path(name: str | Path, folder: Path | None = None) -> Path:
    """Return the file of a map: one that comes with hpcrowd, else a path relative to a folder."""
    return READY.get(str(name), (folder or Path()) / name)


def map_titles() -> dict[str, str]:
    """Return what each map reads, by name."""
    return {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()
        for name, path in READY.items()
    }
