"""What the tests of the page share: the log of twelve users, and a server that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hpcrowd.environment import write_swf
from hpcrowd.environment.traces.trace import Trace

from tests.support.page import Served, started_page
from tests.support.populations import small_log


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory, make_trace: Callable[..., Trace]) -> Path:
    """A log of twelve users over eight weeks."""
    path = tmp_path_factory.mktemp("page") / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


@pytest.fixture
def own_log(log: Path, tmp_path: Path) -> Path:
    """A copy of it in a folder of the test."""
    path = tmp_path / "log.swf"
    path.write_bytes(log.read_bytes())
    return path


@pytest.fixture(scope="module")
def served(log: Path) -> Iterator[Served]:
    """A server that shows it."""
    with started_page(log) as found:
        yield found


@pytest.fixture(scope="module")
def address(served: Served) -> str:
    """The address of its page."""
    return served.address


@pytest.fixture
def slow_scenario(own_log: Path) -> Path:
    """A scenario that takes some seconds, whatever the machine."""
    own_log.with_name("slow.py").write_text(
        "import time\n"
        "from hpcrowd.environment.schedulers.order import FCFS\n"
        "class Slow(FCFS):\n"
        "    name = 'slow'\n"
        "    def select(self, look):\n"
        "        time.sleep(0.006)\n"
        "        return super().select(look)\n"
    )
    path = own_log.with_name("slow.toml")
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nscheduler = "slow.py:Slow"\n')
    return path
