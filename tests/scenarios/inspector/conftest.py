"""What the tests of the page share: the log of twelve users, and a server that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hpcrowd.environment import write_swf
from hpcrowd.environment.traces.trace import Trace

from tests.support.page import BUSY, Opens, Reader, Serve, Served, started_page
from tests.support.populations import small_log

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
def serve() -> Iterator[Serve]:
    """A function that serves pages until the test is over."""
    with ExitStack() as stack:
        yield lambda *what: stack.enter_context(started_page(*what))


@pytest.fixture
def at(browser: Browser, address: str, serve: Serve) -> Iterator[Opens]:
    """A function that opens pages at a busy second, in which nothing may go wrong."""
    opened: list[Reader] = []

    def reader(query: str = f"at={BUSY}", address: str = address, **more: Any) -> Reader:
        opened.append(Reader(browser, address, f"?{query}", **more))
        return opened[-1]

    yield reader
    for one in opened:
        one.close()


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


#: Prices change at night, and carbon intensity twice a day.
POWER = """
pue = 1.25
[[nodes]]
name = "thin"
idle = "60 W"
processor = "40 W"
[carbon]
file = "carbon.csv"
repeat = "year"
[tariff]
price = 0.3
peak_price = 5
periods = [{price = 0.1, opens = "22h", closes = "6h"}]
"""


@pytest.fixture
def powered_log(own_log: Path) -> Path:
    """The log next to a description of power."""
    half_days = np.datetime64("2023-01-01T00") + 12 * np.arange(731)
    rows = [f"{str(at)[:13]}:00Z,{100 + 200 * (n % 2)}" for n, at in enumerate(half_days)]
    own_log.with_name("carbon.csv").write_text("\n".join(["time,g_per_kwh", *rows, ""]))
    own_log.with_name("power.toml").write_text(POWER)
    return own_log
