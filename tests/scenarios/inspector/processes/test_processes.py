"""The processes of the page: none outlives its page or its server."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.page import BUSY, processes_of, started_page

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")
pytest.importorskip("websockets", reason="no websockets: pip install 'hpcrowd[page]'")

from tests.support.page_client import connected

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of Linux")
def test_processes_end_with_their_page_and_with_the_server(own_log):
    """A closed page leaves no process behind; a server that is killed leaves none at all."""
    with started_page(own_log) as served:
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
