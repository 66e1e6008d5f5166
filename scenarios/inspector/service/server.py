"""The server behind the page, on the loopback address by default.

Everything that the page loads comes from this server; no data is requested from the network or
sent to it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import QuantityError, UnavailableError, missing

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

    from hpcrowd.scenarios.inspector.processes.runs import Runs


#: Names of the loopback address.
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")

#: The port if it is free, else another.
PORT = 8765

#: The files of the page.
WEB = Path(__file__).parents[1] / "web"

#: Those of the library that draws charts, in its package.
CHARTS = ("bokeh.min.js", "bokeh-api.min.js")

#: Types of the files of the page.
TYPES = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
}  # fmt: skip


def check_installed() -> None:
    """Check that the packages for the page are installed; an UnavailableError says otherwise."""
    if any(find_spec(name) is None for name in ("bokeh", "starlette", "uvicorn", "websockets")):
        raise UnavailableError(f"hpcrowd inspect: {missing('the page', 'page')}")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens at an address of this machine.

    ``port`` is None for :data:`PORT`, or any that is free, and 0 for any. A QuantityError says that
    it is taken, or that the address is not one of this machine.
    """
    wanted = (PORT, 0) if port is None else (port,)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for place, number in enumerate(wanted):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            if place + 1 == len(wanted):
                raise QuantityError(
                    f"port {number} on {host}: {error.strerror or error}; choose another: "
                    "--port N, 0 for any that is free"
                ) from None
    raise AssertionError("unreachable")


def static_files() -> dict[str, Path]:
    """Return the files that the page may load, by name; there are no others."""
    from bokeh.settings import settings

    library = Path(settings.bokehjs_path()) / "js"
    found = {path.name: path for path in WEB.iterdir() if path.suffix in TYPES}
    return found | {name: library / name for name in CHARTS}


def application(runs: Runs, names: Sequence[str]) -> Starlette:
    """Return the application: the page, its files, and the websocket behind it."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

    from hpcrowd import __version__
    from hpcrowd.scenarios.inspector.service.session import Session

    files = static_files()

    def file(name: str) -> Response:
        path = files.get(name)
        if path is None:
            return PlainTextResponse("hpcrowd: no such file\n", 404)
        # All at once: in pieces they wait for each other.
        return Response(path.read_bytes(), media_type=TYPES[path.suffix])

    # Scripts name those that they need, one after the other; the browser had better begin with all.
    links = "".join(
        f'<link rel="modulepreload" href="static/{name}">\n'
        for name, path in sorted(files.items())
        if path.parent == WEB and path.suffix == ".js"
    )
    content = files["index.html"].read_text(encoding="utf-8").replace("</head>", f"{links}</head>")

    async def page(request: Request) -> Response:
        return Response(content, media_type=TYPES[".html"])

    async def static(request: Request) -> Response:
        return file(request.path_params["name"])

    async def live(socket: WebSocket) -> None:
        await socket.accept()
        session = Session(runs, names, socket.send_text)
        work = asyncio.create_task(session.work())
        try:
            await session.hello(__version__)
            while (message := await socket.receive())["type"] == "websocket.receive":
                await session.receive(message.get("text") or "")  # of bytes, none
        except (WebSocketDisconnect, RuntimeError):
            pass  # the page was closed
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            session.close()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/static/{name}", static),
            WebSocketRoute("/live", live),
        ]
    )


def end_when_hung_up(server: uvicorn.Server) -> None:
    """End a server also when its terminal is closed; it handles Ctrl-C and SIGTERM itself."""

    def end(*_: object) -> None:
        server.should_exit = True

    hung_up = getattr(signal, "SIGHUP", None)  # not on Windows
    main = threading.current_thread() is threading.main_thread()
    if hung_up is not None and main and signal.getsignal(hung_up) != signal.SIG_IGN:
        signal.signal(hung_up, end)


def serve(
    names: Sequence[str],
    runs: Runs,
    listening: socket.socket,
    token: str,
    ready: Callable[[], Any],
) -> None:
    """Serve the page until interrupted; the keeper has been started.

    A browser has to present the ``token``; ``ready`` is called when pages can be opened. An
    UnavailableError says that the server does not start.
    """
    import uvicorn

    from hpcrowd.scenarios.inspector.service.guard import Guard

    host, port = listening.getsockname()[:2]
    loopback = is_loopback(host)
    hosts = (*LOOPBACK_NAMES, host) if loopback else ()
    guard = Guard(application(runs, names), port, token, hosts)
    config = uvicorn.Config(
        guard,
        log_level="error",
        access_log=False,
        ws="websockets-sansio",
        # On this machine it takes longer to pack a picture than to pass it on.
        ws_per_message_deflate=not loopback,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    end_when_hung_up(server)

    async def run() -> None:
        await runs.listen()
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            while not server.started and not task.done():
                await asyncio.sleep(0.02)
            if server.started:
                await runs.begin()
                ready()
            await task
            if not server.started:
                raise UnavailableError("hpcrowd inspect: the server could not start; see above")
        finally:
            runs.close()

    asyncio.run(run())
