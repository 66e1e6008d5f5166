"""A server of the page and a browser, for tests of what a reader sees."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Where browsers are looked for.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: No address but the loopback is resolved: a page that needs the network breaks.
CUT_OFF = [
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]

#: A busy second of :func:`population_cases.small_log`.
BUSY = 2_786_460

#: ms that a test waits for what has to appear; long, for busy machines.
PATIENCE = 60_000

#: Shades of grey by which a picture differs from an empty one at least, standard deviation.
NOT_EMPTY = 8.0


def find_browser() -> str | None:
    """Return the path of a browser, None where there is none."""
    found = (shutil.which(name) for name in BROWSERS)
    return next((path for path in found if path is not None), None)


class Served(NamedTuple):
    """A page that is served."""

    address: str  #: with its token
    process: subprocess.Popen[str]
    told: list[str]  #: what the command said until then

    def seconds(self) -> float:
        """Return how long processors have worked for it, s; only on Linux."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started_page(*what: str | Path, options: Sequence[str] = ("--port", "0")) -> Iterator[Served]:
    """Serve a page as the command does."""
    command = [sys.executable, "-m", "hpcrowd", "inspect", *map(str, what), *options]
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=dict(os.environ), start_new_session=True
    )
    assert server.stderr is not None
    try:
        lines = []
        for line in server.stderr:
            lines.append(line)
            if found := re.search(r"The page is at (http://\S+)", line):
                yield Served(found[1], server, lines)
                return
        pytest.fail("no page: " + "".join(lines))
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        server.stderr.close()


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser without a network."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=CUT_OFF)
        yield browser
        browser.close()


class Reader:
    """A user who looks at the page."""

    def __init__(
        self,
        browser: Browser,
        address: str,
        query: str = "",
        width: int = 1300,
        height: int = 1000,
        **context: Any,
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, **context)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.told: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("requestfailed", lambda one: self.told.append(f"failed: {one.url[:200]}"))
        self.page.goto(address + query.replace("?", "&", 1))
        self.ready()

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.told.append(f"console: {message.text}")

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.told.append(f"left: {request.url[:200]}")

    def ready(self) -> None:
        """Wait until the first complete view is there."""
        self.page.wait_for_selector('body[data-ready="1"][data-busy="0"]')

    def close(self) -> None:
        """Close the page; nothing may have gone wrong in the browser."""
        self.context.close()
        assert [] == self.told, self.told

    def data(self, name: str) -> str:
        """Return what the page notes of itself for tests."""
        found: str = self.page.evaluate("name => document.body.dataset[name]", name)
        return found

    @property
    def at(self) -> int:
        """The second that is shown."""
        return int(self.data("at"))

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        limit = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < limit, what or "it never came to hold"
            self.page.wait_for_timeout(20)

    @contextmanager
    def until_shown(self) -> Iterator[None]:
        """Wait until what happens in the block has led to another view, and that is drawn."""
        before = int(self.data("shown"))
        yield
        self.until(
            lambda: int(self.data("shown")) > before and self.data("busy") == "0", "no new view"
        )

    def press(self, name: str) -> None:
        """Press a button of the bar and wait for the new view."""
        with self.until_shown():
            self.click(name)

    def click(self, name: str) -> None:
        """Press a button of the bar."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def part(self, name: str) -> None:
        """Go to a part of the page."""
        with self.until_shown():
            self.page.get_by_role("tab", name=name).click()

    @property
    def time(self) -> str:
        """What the clock of the page shows."""
        return self.page.locator("#clock").inner_text()

    def rows(self, panel: str) -> list[str]:
        """Return the texts of the rows of a table."""
        return self.page.locator(f"#{panel} tbody tr").all_inner_texts()

    def words(self, panel: str) -> str:
        """Return the text alternative of a chart."""
        found = self.page.locator(f"#{panel} [role=application]").first.get_attribute("aria-label")
        assert found is not None
        return found

    def spread(self, panel: str) -> float:
        """Return how much the shades of a panel differ, as it is on the screen."""
        shot = self.page.locator(f"#{panel}").screenshot()
        return float(np.asarray(Image.open(io.BytesIO(shot)).convert("L"), float).std())

    def boxes(self, panel: str) -> list[tuple[float, float, str]]:
        """Return places on a chart with the tooltip at each, on a grid of pixels."""
        box = self.page.locator(f"#{panel} [role=application]").first.bounding_box()
        assert box is not None
        found = []
        for across in range(70, int(box["width"]), 23):
            for down in range(8, int(box["height"]) - 40, 19):
                x, y = box["x"] + across, box["y"] + down
                self.page.mouse.move(x, y)
                tip = self.page.locator(".tip")
                if tip.count() and tip.is_visible():
                    found.append((x, y, tip.inner_text()))
        return found

    def saved(self, panel: str, kind: str) -> Path:
        """Save a panel as a file and return where it is."""
        with self.page.expect_download() as download:
            button = self.page.locator(f"#{panel}").get_by_role("button", name=kind, exact=False)
            button.first.click()
        return Path(download.value.path())


def processes_of(served: Served) -> list[int]:
    """Return the processes of a server that are not the server itself."""
    name = "\0".join([*served.process.args, ""]).encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:  # one that has ended, and for which nobody has waited yet, has no command
            if (place / "cmdline").read_bytes() == name and int(place.name) != served.process.pid:
                found.append(int(place.name))
        except OSError:
            continue
    return found
