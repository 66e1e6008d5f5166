"""The server behind the page: Solara's, on the loopback address by default.

Everything that the page loads comes from this server; no data is requested from the network or
sent to it.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import socket
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hpcrowd.environment.errors import QuantityError, UnavailableError, missing

if TYPE_CHECKING:
    from hpcrowd.scenarios.inspector.subject import Subject


#: Default address of the server.
LOOPBACK = "127.0.0.1"

#: Names of the loopback address.
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")

#: The port if it is free, else another.
PORT = 8765

#: Number of new objects after which Python collects unused ones.
YOUNG_OBJECTS = 50_000

#: How long a page may be disconnected before its run is removed; when a tab is closed, its run is
#: removed at once.
AWAY = "60s"


def check_installed() -> None:
    """Check that the packages for the page are installed.

    Raises
    ------
    UnavailableError
        When they are not.
    """
    if any(find_spec(name) is None for name in ("solara", "solara_assets", "uvicorn")):
        raise UnavailableError(f"hpcrowd inspect: {missing('Solara', 'page')}")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens.

    Parameters
    ----------
    host
        An address of this machine.
    port
        None for :data:`PORT`, or any that is free; 0 for any.

    Raises
    ------
    QuantityError
        When the port is taken, or the address is not one of this machine.
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


def serve(
    subjects: Sequence[Subject], listening: socket.socket, ready: Callable[[str], Any]
) -> None:
    """Serve the page until interrupted.

    Parameters
    ----------
    subjects
        What is inspected.
    listening
        Of :func:`bound_socket`.
    ready
        Called with the token when pages can be opened.

    Raises
    ------
    UnavailableError
        When Solara is not installed, or does not start.
    """
    check_installed()
    from solara.server import settings

    settings.telemetry.mixpanel_enable = False
    settings.kernel.cull_timeout = AWAY
    settings.theme.title = "hpcrowd"
    settings.theme.show_banner = False
    settings.assets.fontawesome_enabled = False
    import uvicorn
    from solara.server import app, starlette

    from hpcrowd.scenarios.inspector import desk
    from hpcrowd.scenarios.inspector.guard import Guard

    desk.SUBJECTS[:] = subjects
    # A picture is made of tens of thousands of objects that are unused after the next one:
    # collected while they are young, they do not make Python scan all users again and again.
    gc.set_threshold(YOUNG_OBJECTS)
    app.apps["__default__"] = app.AppScript("hpcrowd.scenarios.inspector.page:Page")
    # About cookies in frames of other sites, where this page is not meant to be.
    warnings.filterwarnings("ignore", message="Cookies with samesite=none")
    host, port = listening.getsockname()[:2]
    guard = Guard(starlette.app, port, (*LOOPBACK_NAMES, host) if is_loopback(host) else ())
    config = uvicorn.Config(guard, log_level="error", access_log=False, ws="websockets-sansio")
    server = uvicorn.Server(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.02)
        if server.started:
            ready(guard.token)
        await task
        if not server.started:
            raise UnavailableError("hpcrowd inspect: the server could not start; see above")

    asyncio.run(run())
