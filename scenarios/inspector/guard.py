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
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

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
    token
        Of this server; a random one unless given.
    """

    def __init__(
        self, inner: Application, port: int, hosts: Collection[str] = (), token: str | None = None
    ) -> None:
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        self._inner, self._hosts = inner, hosts
        self._cookie = f"hpcrowd-{port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._inner(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        query = scope.get("query_string", b"").decode("latin-1").split("&")
        given = [part.removeprefix(f"{KEY}=") for part in query if part.startswith(f"{KEY}=")]
        if (why := self._foreign(headers)) is not None:
            await _refuse(scope, send, why)
        elif self._has_cookie(headers.get("cookie", "")) and not given:
            await self._inner(scope, receive, send)
        elif scope["type"] == "http" and any(map(self._is_token, given)):
            rest = "&".join(part for part in query if not part.startswith(f"{KEY}="))
            cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Lax"
            where = ("location", f"/?{rest}" if rest else "/")
            await _answer(send, 303, "", where, ("set-cookie", cookie))
        else:
            await _refuse(
                scope, send, "open the address that `hpcrowd inspect` printed; it holds a token"
            )

    def _foreign(self, headers: dict[str, str]) -> str | None:
        """Return why a request does not come from the page; None if it may."""
        host = headers.get("host", "")
        if self._hosts and _name(host) not in self._hosts:
            return f"host {host[:60]!r}: not a name of this machine"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"origin {origin[:60]!r}: not this page"
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("latin-1"), self.token.encode())

    def _has_cookie(self, text: str) -> bool:
        try:
            found = SimpleCookie(text).get(self._cookie)
        except CookieError:
            return False
        return found is not None and self._is_token(found.value)


def _name(host: str) -> str:
    """Return the name in a ``Host`` without its port, as in addresses."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


async def _refuse(scope: Message, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why})
    else:
        await _answer(send, 403, f"hpcrowd: {why}\n")


async def _answer(send: Send, status: int, text: str, *headers: tuple[str, str]) -> None:
    """Answer with a text."""
    body = text.encode()
    fields = [
        ("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))),
        ("cache-control", "no-store"), *headers,
    ]  # fmt: skip
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in fields],
        }
    )
    await send({"type": "http.response.body", "body": body})
