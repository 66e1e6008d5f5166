"""The guard of the page: it answers only browsers that have its address, and only the page itself.

Any site that is open in the same browser can send requests to this machine, and so can any program
on it. A request is answered only if

- its ``Host`` is a name of the loopback address, where the page listens on that alone;
- its ``Origin``, which browsers add to all websockets, is the page itself;
- it carries the token of this server: in the address that the command prints, afterwards in a
  cookie, so that links that are passed on do not hold it.

Headers let the browser load nothing from elsewhere, run no script but the files of the page, and
show the page in no frame.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Collection
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.websockets import WebSocketClose

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Key of the token in the query of the address.
KEY = "token"

#: Random bytes in a token.
TOKEN_BYTES = 16

#: How long a server that is started again on the same port keeps its token, s, so that pages that
#: are open find it again.
TOKEN_KEPT = 12 * 3600

#: Headers of every answer. Bokeh puts style sheets into the page itself, so
#: styles cannot be limited to files; scripts are.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

#: Close code of a refused websocket: it violates a policy (RFC 6455, section 7.4.1).
POLICY_VIOLATION = 1008


class Guard:
    """Passes on the requests of the page and refuses all others.

    ``hosts`` are names that requests may use for this machine; empty for any. The cookie is named
    after the port, since a browser sends the cookies of one address to all its ports.
    """

    def __init__(self, inner: ASGIApp, port: int, token: str, hosts: Collection[str] = ()) -> None:
        self.token = token
        self._inner, self._hosts = inner, hosts
        self._cookie = f"hpcrowd-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        answer = None
        if scope["type"] in ("http", "websocket"):
            answer = self._answer(HTTPConnection(scope))

        async def careful(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, words in HEADERS.items():
                    headers[name] = words
            await send(message)

        if answer is None:
            await self._inner(scope, receive, careful)
        elif scope["type"] == "http":
            await answer(scope, receive, careful)
        else:
            await WebSocketClose(POLICY_VIOLATION)(scope, receive, send)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Return the answer to a request; None if the page answers it."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self._hosts and (request.url.hostname or "") not in self._hosts:
            return _refusal(f"host {host[:60]!r}: not a name of this machine")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _refusal(f"origin {origin[:60]!r}: not this page")
        given = request.query_params.get(KEY)
        if given is None and self._is_token(request.cookies.get(self._cookie, "")):
            return None
        if given is None and self._is_foreign_link(request):
            return _entered(request)  # from there on, the cookie comes along
        if given is None or not self._is_token(given):
            return _refusal("open the address that `hpcrowd inspect` printed; it holds a token")
        entered = _entered(request)
        entered.set_cookie(self._cookie, self.token, httponly=True, samesite="strict", path="/")
        return entered

    @staticmethod
    def _is_foreign_link(request: HTTPConnection) -> bool:
        """Return whether a reader follows a link in a page of another site.

        The cookie does not come along with it, only with what this server's own pages ask for.
        """
        headers = request.headers
        return bool(
            request.scope["type"] == "http"
            and request.url.path == "/"
            and headers.get("sec-fetch-site") == "cross-site"
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self.token.encode())


def _entered(request: HTTPConnection) -> Response:
    """Return a page that opens the page itself, without the token in its address."""
    rest = [(key, text) for key, text in request.query_params.multi_items() if key != KEY]
    where = escape(f"/?{urlencode(rest)}" if rest else "/", quote=True)
    return HTMLResponse(
        f'<!doctype html><meta http-equiv="refresh" content="0;url={where}">'
        '<title>hpcrowd</title><link rel="icon" href="data:,">'
        f'<p><a href="{where}">Open the page</a></p>'
    )


def _refusal(why: str) -> Response:
    return PlainTextResponse(f"hpcrowd: {why}\n", 403)


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def kept_token(port: int) -> str:
    """Return a random token; the same as of a server that used the port in the last hours.

    It is in a file of the user's state folder, which nobody else can read.
    """
    token = new_token()
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(base) / "hpcrowd" / f"page-{port}"
    with suppress(OSError):
        if path.exists() and time.time() - path.stat().st_mtime < TOKEN_KEPT:
            known = path.read_text().strip()
            token = known if len(known) == len(token) else token
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in path.parent.glob("page-*"):
            if old == path or time.time() - old.stat().st_mtime > TOKEN_KEPT:
                old.unlink()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)
    return token
