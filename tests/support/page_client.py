"""A page without a browser: it speaks to the server as the page does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.sync.client import ClientConnection, connect

#: s that an answer may take.
PATIENCE = 60.0


class Client:
    """A page."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.pushed: list[dict[str, Any]] = []
        self._serial = 0

    def send(self, do: str, **asked: Any) -> int:
        """Send a request and return its number."""
        self._serial += 1
        self.connection.send(json.dumps({"id": self._serial, "do": do, **asked}))
        return self._serial

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while True:
            found: dict[str, Any] = json.loads(self.connection.recv(PATIENCE))
            if found.get("id") == number:
                return found
            self.pushed.append(found)

    def ask(self, do: str, **asked: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return self.answer(self.send(do, **asked))

    def until(self, kind: str, **values: Any) -> dict[str, Any]:
        """Wait for a push with these values; those that came before count."""
        place = 0
        while True:
            for found in self.pushed[place:]:
                if found.get("push") == kind and values.items() <= found.items():
                    return found
            place = len(self.pushed)
            self.pushed.append(json.loads(self.connection.recv(PATIENCE)))

    def show(self, at: int | None = None, *panels: str, **asked: Any) -> dict[str, Any]:
        """Bring the runs to a second and return their panels."""
        return self.ask("show", at=at, panels=list(panels), **asked)


@contextmanager
def connected(address: str, origin: str | None = "", cookie: str | None = None) -> Iterator[Client]:
    """Connect to a page's server; origin "" is its own, cookie None is the right token."""
    parts = urlsplit(address)
    token = parse_qs(parts.query)["token"][0] if cookie is None else cookie
    own = f"http://{parts.netloc}"
    with connect(
        f"ws://{parts.netloc}/live",
        origin=own if origin == "" else origin,  # type: ignore[arg-type]
        additional_headers={"Cookie": f"hpcrowd-{parts.port}={token}"},
        max_size=None,
        open_timeout=PATIENCE,
        ping_interval=None,
    ) as connection:
        yield Client(connection)
