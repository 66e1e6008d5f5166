"""What the tests of reports share."""

import pytest

from tests.support.reports import runs_of_every_kind


@pytest.fixture(scope="session")
def runs(make_trace, tmp_path_factory):
    """A run of every kind."""
    return runs_of_every_kind(make_trace, tmp_path_factory.mktemp("runs"))
