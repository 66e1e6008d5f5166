"""What the tests of the page share: the log of twelve users, and a server that shows it."""

from contextlib import ExitStack

import numpy as np
import pytest
from hpcrowd import write_swf

from tests.support.page import BUSY, Reader, started_page
from tests.support.populations import small_log


@pytest.fixture(scope="session")
def log(tmp_path_factory, make_trace):
    """A log of twelve users over eight weeks."""
    path = tmp_path_factory.mktemp("page") / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


@pytest.fixture
def own_log(log, tmp_path):
    """A copy of it in a folder of the test."""
    path = tmp_path / "log.swf"
    path.write_bytes(log.read_bytes())
    return path


@pytest.fixture(scope="module")
def served(log):
    """A server that shows it."""
    with started_page(log) as found:
        yield found


@pytest.fixture(scope="module")
def address(served):
    """The address of its page."""
    return served.address


@pytest.fixture
def serve():
    """A function that serves pages until the test is over."""
    with ExitStack() as stack:
        yield lambda *what: stack.enter_context(started_page(*what))


@pytest.fixture
def at(browser, address, serve):
    """A function that opens pages at a busy second, in which nothing may go wrong."""
    opened: list[Reader] = []

    def reader(query=f"at={BUSY}", address=address, **more):
        opened.append(Reader(browser, address, f"?{query}", **more))
        return opened[-1]

    yield reader
    for one in opened:
        one.close()


@pytest.fixture
def slow_scenario(own_log):
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
def powered_log(own_log):
    """The log next to a description of power."""
    half_days = np.datetime64("2023-01-01T00") + 12 * np.arange(731)
    rows = [f"{str(at)[:13]}:00Z,{100 + 200 * (n % 2)}" for n, at in enumerate(half_days)]
    own_log.with_name("carbon.csv").write_text("\n".join(["time,g_per_kwh", *rows, ""]))
    own_log.with_name("power.toml").write_text(POWER)
    return own_log
