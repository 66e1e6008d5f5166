"""A made-up archive for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archive import Server, archive


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve a made-up archive, whose table takes the place of the real one."""
    with archive(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def cache(server: Server, tmp_path: Path) -> Path:
    """Return the cache folder, which is there."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"
