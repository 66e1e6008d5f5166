"""The guard of the page: it answers only browsers that have its address, and only the page itself.

Any site that is open in the same browser can send requests to this machine, and so can any program
on it. A request is answered only if

- its ``Host`` is a name of the loopback address, where the page listens on that alone;
- its ``Origin``, which browsers add to all websockets, is the page itself;
- it carries the token of this server: in the address that the command prints, afterwards in a
  cookie, so that links that are passed on do not hold it.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.websockets import WebSocketClose

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Key of the token in the query of the address.
KEY = "token"

#: Random bytes in a token.
TOKEN_BYTES = 16

#: Close code of a refused websocket: it violates a policy (RFC 6455, section 7.4.1).
POLICY_VIOLATION = 1008


class Guard:
    """Passes on the requests of the page and refuses all others.

    Parameters
    ----------
    inner
        The application, ASGI.
    port
        Of the server. The cookie is named after it, since a browser sends the cookies of one
        address to all its ports.
    hosts
        Names that requests may use for this machine; empty for any.
    """

    def __init__(self, inner: ASGIApp, port: int, hosts: Collection[str] = ()) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._inner, self._hosts = inner, hosts
        self._cookie = f"hpcrowd-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        answer = None
        if scope["type"] in ("http", "websocket"):
            answer = self._answer(HTTPConnection(scope))
        if answer is None:
            await self._inner(scope, receive, send)
        elif scope["type"] == "http":
            await answer(scope, receive, send)
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
        if given is None or not self._is_token(given):
            return _refusal("open the address that `hpcrowd inspect` printed; it holds a token")
        rest = [(key, text) for key, text in request.query_params.multi_items() if key != KEY]
        entered = RedirectResponse(f"/?{urlencode(rest)}" if rest else "/", 303)
        entered.set_cookie(self._cookie, self.token, httponly=True, samesite="lax")
        return entered

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self.token.encode())


def _refusal(why: str) -> Response:
    return PlainTextResponse(f"hpcrowd: {why}\n", 403)
