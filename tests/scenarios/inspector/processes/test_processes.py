"""The processes of the page: one can be halted, and none outlives its page or its server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment import write_swf
from hpcrowd.environment.traces.trace import Trace

from tests.support.page import processes_of, started_page
from tests.support.populations import small_log

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")
pytest.importorskip("websockets", reason="no websockets: pip install 'hpcrowd[page]'")

from tests.support.page_client import connected

#: A busy second of the log.
BUSY = 2_786_460


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, make_trace: Callable[..., Trace]) -> Path:
    """A log of twelve users over eight weeks."""
    path = tmp_path_factory.mktemp("server") / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


def test_a_long_way_can_be_halted(log: Path, tmp_path: Path) -> None:
    """Halt stops a run where it is, and it can go on from there."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time\n"
        "from hpcrowd.environment.schedulers.order import FCFS\n"
        "class Slow(FCFS):\n"
        "    name = 'slow'\n"
        "    def select(self, look):\n"
        "        time.sleep(0.01)\n"
        "        return super().select(look)\n"
    )
    (tmp_path / "log.swf").write_bytes(log.read_bytes())
    what = tmp_path / "slow.toml"
    what.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nscheduler = "slow.py:Slow"\n')
    with started_page(what) as served, connected(served.address) as client:
        client.ask("open", at=0)
        number = client.send("show", at=10**9)
        client.until("progress")
        client.connection.send('{"do": "halt"}')
        found = client.answer(number)
        assert (True, False) == (found["halted"], found["over"])
        assert 0 < found["at"] < 10**9
        assert found["at"] + 60 == client.show(found["at"] + 60)["at"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of Linux")
def test_processes_end_with_their_page_and_with_the_server(log: Path, tmp_path: Path) -> None:
    """A closed page leaves no process behind; a server that is killed leaves none at all."""
    path = tmp_path / "log.swf"  # by which its processes are known
    path.write_bytes(log.read_bytes())
    with started_page(path) as served:
        with connected(served.address) as client:
            client.ask("open", at=BUSY, runs=[{}, {"settings": {"scheduler": "fcfs"}}])
            client.until("timeline", run=1, done=True)
            client.show(BUSY)
            most = len(processes_of(served))
        limit = time.perf_counter() + 10
        while len(processes_of(served)) > most - 3 and time.perf_counter() < limit:
            time.sleep(0.1)
        left = processes_of(served)
        assert len(left) <= most - 3, "two workers, and the second run"
        os.kill(served.process.pid, signal.SIGKILL)
        limit = time.perf_counter() + 10
        while set(left) & set(processes_of(served)) and time.perf_counter() < limit:
            time.sleep(0.1)
        assert not set(left) & set(processes_of(served))
