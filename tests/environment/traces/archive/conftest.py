"""A made-up archive for the tests of this folder."""

import pytest

from tests.support.archive import archive


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a made-up archive, whose table takes the place of the real one."""
    with archive(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def cache(server, tmp_path):
    """Return the cache folder, which is there."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"
