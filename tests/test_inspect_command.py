"""The command ``hpcrowd inspect`` before a page is opened."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hpcrowd.environment import write_swf
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.trace import Trace
from page_cases import started_page

pytest.importorskip("solara", reason="no solara: pip install 'hpcrowd[page]'")

from hpcrowd.scenarios.inspector.server import LOOPBACK, bound_socket, is_loopback

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def log(tmp_path: Path, make_trace: Callable[..., Trace]) -> Path:
    """A log of one job."""
    path = tmp_path / "one.swf"
    job = {"submit": 0, "run": 60, "requested_processors": 1, "user": 1}
    write_swf(make_trace(job, header="; MaxProcs: 1"), path)
    return path


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.1.5", False),
        ("example.org", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """Only what no other machine can reach counts."""
    assert expected == is_loopback(host)


def test_listens_on_loopback_only(log: Path) -> None:
    """Other addresses of this machine refuse, and names of other sites are not served."""
    with started_page(log) as served:
        port = int(served.address.rsplit(":", 1)[1].strip("/"))
        assert f"http://{LOOPBACK}:{port}/" == served.address
        assert b"200 OK" in answer(port, f"127.0.0.1:{port}")
        assert b"200 OK" in answer(port, f"localhost:{port}")
        assert b"400 Bad Request" in answer(port, "evil.example")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()


def answer(port: int, host: str) -> bytes:
    """Return how the answer to a request for the page begins."""
    with socket.create_connection((LOOPBACK, port), timeout=30) as one:
        one.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return one.recv(1000)


@pytest.mark.slow
def test_ctrl_c_ends_it(log: Path) -> None:
    """Interrupted, it says so and ends well, also with a page open."""
    with started_page(log) as served:
        port = int(served.address.rsplit(":", 1)[1].strip("/"))
        assert b"200 OK" in answer(port, f"127.0.0.1:{port}")
        served.process.send_signal(signal.SIGINT)
        assert 0 == served.process.wait(30)
        assert served.process.stderr is not None
        assert "The page is closed." == served.process.stderr.read().strip()


@pytest.mark.slow
def test_says_when_others_are_let_in(log: Path) -> None:
    """Another address is reported, before the page is there."""
    with started_page(log, options=("--port", "0", "--host", "0.0.0.0")) as served:
        told = "".join(served.told)
    assert "Listening on 0.0.0.0" in told
    assert "without a password" in told


def test_a_port_that_is_taken() -> None:
    """Asked for by number it is an error; else another one is taken."""
    with bound_socket(LOOPBACK, 0) as one:
        number = one.getsockname()[1]
        with pytest.raises(QuantityError, match=f"port {number} on 127.0.0.1: .*--port N"):
            bound_socket(LOOPBACK, number)
    with bound_socket(LOOPBACK, None) as first, bound_socket(LOOPBACK, None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing.swf",), "nothing.swf: no such file; give a trace, a scenario"),
        (("a", "b", "c"), "3 runs: a page shows 2 at most"),
        (("one.swf", "--host", "203.0.113.7", "--port", "0"), "port 0 on 203.0.113.7"),
    ],
)
def test_refused(
    call: Call, log: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    """One line, exit code 2."""
    monkeypatch.chdir(log.parent)
    code, out, err = call("inspect", *arguments)
    assert (2, "") == (code, out)
    last = err.strip().splitlines()[-1]
    assert last.startswith("hpcrowd: ")
    assert told in last


def test_a_scenario_with_a_mistake(call: Call, tmp_path: Path) -> None:
    """File, line, value and rule are in one line."""
    path = tmp_path / "bad.toml"
    path.write_text('[scenario]\nkind = "replay"\ntrace = "none.swf"\n')
    code, _, err = call("inspect", path)
    assert 2 == code
    assert "none.swf" in err.strip().splitlines()[-1]


def test_without_solara(call: Call, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setattr("hpcrowd.scenarios.inspector.server.find_spec", lambda name: None)
    code, _, err = call("inspect", log)
    assert 2 == code
    assert 'pip install "hpcrowd[page]"' in err


def test_nothing_of_the_page_loads_with_the_command_line() -> None:
    """Who does not inspect does not wait for Solara."""
    import subprocess

    script = (
        "import sys, hpcrowd.scenarios.cli; print(any('solara' in name for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "False" == done.stdout.strip()
