"""The command ``hpcrowd inspect``: whom its server answers, how it ends, what it refuses."""

import json
import os
import re
import signal
import socket

import pytest
from hpcrowd import write_swf
from hpcrowd.environment.errors import QuantityError

from tests.support.page import started_page

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")

from hpcrowd.scenarios.inspector.service.guard import kept_token, new_token
from hpcrowd.scenarios.inspector.service.server import bound_socket, is_loopback

from tests.support.page_client import connected

LOOPBACK = "127.0.0.1"


@pytest.fixture
def one_job(tmp_path, make_trace):
    """A log of one job."""
    path = tmp_path / "one.swf"
    job = {"submit": 0, "run": 60, "requested_processors": 1, "user": 1}
    write_swf(make_trace(job, header="; MaxProcs: 1"), path)
    return path


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "192.168.1.5", "example.org")),
    ],
)
def test_loopback(host, expected):
    """Only what no other machine can reach counts."""
    assert expected == is_loopback(host)


def parts(address):
    """Return the port and the token of an address, and the cookie of a browser that has it."""
    found = re.fullmatch(rf"http://{LOOPBACK}:(\d+)/\?token=([\w-]{{20,}})", address)
    assert found is not None, address
    return int(found[1]), found[2], f"Cookie: hpcrowd-{found[1]}={found[2]}"


#: Headers that ask for a websocket.
UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip

#: Where the page opens one.
LIVE = "/live"


def answer(port, *headers, path="/", host=LOOPBACK):
    """Return the answer to a request for the page; of a websocket, how it begins."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", *headers]
    if not (upgrade := UPGRADE[0] in headers):
        lines.append("Connection: close")
    with socket.create_connection((LOOPBACK, port), timeout=30) as one:
        one.sendall("\r\n".join([*lines, "", ""]).encode())
        found = one.recv(65536)
        while not upgrade and (more := one.recv(65536)):
            found += more
        return found.decode("latin-1")


@pytest.mark.slow
def test_only_the_page_itself_is_answered(one_job):
    """Without the token of the address, from another site or at another address, nothing is."""
    with started_page(one_job) as served:
        port, token, cookie = parts(served.address)
        own = f"Origin: http://{LOOPBACK}:{port}"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()
        refused = answer(port, cookie, host="evil.example")
        assert " 403 Forbidden" in refused
        assert "not a name of this machine" in refused
        for path in ("/", "/?token=wrong", "/?token=", "/static/page.css", LIVE):
            assert " 403 Forbidden" in answer(port, path=path)
        wrong = f"{cookie}x", "Cookie: hpcrowd-1=1", "Cookie: =;;", f"Cookie: other={token}"
        for one in (*wrong, f"Cookie: hpcrowd-{port}="):
            assert " 403 Forbidden" in answer(port, one)
            assert " 403 Forbidden" in answer(port, one, own, *UPGRADE, path=LIVE)
        sites = ("http://evil.example", "null", f"http://{LOOPBACK}:{port + 1}", "", "http://[")
        for site in sites:
            assert " 403 Forbidden" in answer(port, cookie, f"Origin: {site}")
            refused = answer(port, cookie, f"Origin: {site}", *UPGRADE, path=LIVE)
            assert " 403 Forbidden" in refused
        assert " 403 Forbidden" in answer(port, path=f"{LIVE}?token=wrong")
        for path in ("..%2fserver.py", "server.py", "../guard.py"):
            assert " 404 " in answer(port, cookie, path=f"/static/{path}")
        entered = answer(port, path=f"/?tab=users&token={token}&at=5")
        assert " 200 OK" in entered
        assert 'http-equiv="refresh" content="0;url=/?tab=users&amp;at=5"' in entered
        assert f"set-cookie: hpcrowd-{port}={token}; HttpOnly; Path=/; SameSite=strict" in entered
        for path in ("/", "/static/main.js", "/static/bokeh.min.js"):
            assert " 200 OK" in (page := answer(port, cookie, path=path))
            assert "content-security-policy: default-src 'none'; script-src 'self';" in page
            assert "frame-ancestors 'none'" in page
        assert " 200 OK" in answer(port, cookie, host="localhost")
        assert " 101 Switching" in answer(port, cookie, own, *UPGRADE, path=LIVE)
        served.process.send_signal(signal.SIGINT)
        assert 0 == served.process.wait(30)
        assert served.process.stderr is not None
        assert ["The page is closed."] == served.process.stderr.read().splitlines()


def test_tokens(tmp_path, monkeypatch):
    """They are random, and kept by port for hours, in a file that only its owner reads."""
    tokens = {new_token() for _ in range(100)}
    assert (100, True) == (len(tokens), min(map(len, tokens)) >= 20)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one = kept_token(8765)
    assert one != kept_token(8766)
    path = tmp_path / "hpcrowd" / "page-8765"
    assert 0o600 == path.stat().st_mode & 0o777
    assert one == kept_token(8765)
    os.utime(path, (0, 0))
    assert one != kept_token(8765)
    path.write_text("short")
    assert 22 == len(kept_token(8765))
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert kept_token(8765) != kept_token(8765)


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(one_job, ended_by):
    """For all of its processes, with a page open that has sent what it must not: one line."""
    with started_page(one_job) as served:
        with connected(served.address) as client:
            client.ask("open")
            for wrong in (b"\0\xff", b"", "", "{}"):
                client.connection.send(wrong)
                while "error" not in (found := json.loads(client.connection.recv(60))):
                    pass
                assert found["error"].startswith("message: ")
            assert client.show(0, "queue")["runs"]
            os.killpg(served.process.pid, ended_by)
            assert 0 == served.process.wait(30)
        assert served.process.stderr is not None
        assert "The page is closed." == served.process.stderr.read().strip()


@pytest.mark.slow
def test_says_when_others_are_let_in(one_job):
    """Another address is reported, before the page is there."""
    with started_page(one_job, options=("--port", "0", "--host", "0.0.0.0")) as served:
        told = "".join(served.told)
    for words in ("Listening on 0.0.0.0", "whoever has the address below", "not encrypted"):
        assert words in told


def test_a_port_that_is_taken():
    """Asked for by number it is an error; else another one is taken."""
    with bound_socket(LOOPBACK, 0) as one:
        number = one.getsockname()[1]
        with pytest.raises(QuantityError, match=f"port {number} on 127.0.0.1: .*--port N"):
            bound_socket(LOOPBACK, number)
    with bound_socket(LOOPBACK, None) as first, bound_socket(LOOPBACK, None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_without_the_page(call, one_job, monkeypatch):
    """It says what to install."""
    monkeypatch.setattr("hpcrowd.scenarios.inspector.service.server.find_spec", lambda name: None)
    code, _, err = call("inspect", one_job)
    assert 2 == code
    assert 'pip install "hpcrowd[page]"' in err
