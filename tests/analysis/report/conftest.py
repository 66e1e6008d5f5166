"""What the tests of reports share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hpcrowd.analysis import Run
from hpcrowd.environment import Trace

from tests.support.reports import runs_of_every_kind


@pytest.fixture(scope="session")
def runs(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    """A run of every kind."""
    return runs_of_every_kind(make_trace, tmp_path_factory.mktemp("runs"))
