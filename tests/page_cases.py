"""A server of the page and a browser, for tests of what a reader sees."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Where browsers are looked for.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: No address but the loopback is resolved: a page that needs the network breaks.
CUT_OFF = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)

#: ms that a test waits for what has to appear; long, for busy machines.
PATIENCE = 60_000


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
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
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
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(CUT_OFF))
        yield browser
        browser.close()


class Reader:
    """A user who looks at the page.

    Attributes
    ----------
    page
        The page of the browser.
    told
        Errors of its console, requests that left this machine or failed.
    """

    def __init__(self, browser: Browser, address: str, query: str = "", width: int = 1300) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 1000})
        self.page.set_default_timeout(PATIENCE)
        self.told: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("requestfailed", lambda one: self.told.append(f"failed: {one.url[:200]}"))
        self.page.goto(address + query.replace("?", "&", 1))
        self.page.wait_for_selector(".hpcrowd-done-1", state="attached")

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self.told.append(f"console: {message.text}")

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.told.append(f"left: {request.url[:200]}")

    @property
    def done(self) -> int:
        """How much has been done on the page so far."""
        found = self.page.locator(".hpcrowd-bar").get_attribute("class")
        return int(str(found).split("hpcrowd-done-")[1].split()[0])

    @contextmanager
    def until_done(self) -> Iterator[None]:
        """Wait until what happens in the block is done."""
        before = self.done
        yield
        self.page.wait_for_selector(f".hpcrowd-done-{before + 1}", state="attached")

    def press(self, name: str) -> None:
        """Press a button of the bar and wait until what it does is done."""
        with self.until_done():
            self.click(name)

    def click(self, name: str) -> None:
        """Press a button of the bar."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def part(self, name: str) -> None:
        """Go to a part of the page."""
        self.page.locator(".hpcrowd-part button", has_text=name).click()

    @property
    def time(self) -> str:
        """What the clock of the page shows."""
        return self.page.locator(".hpcrowd-time").inner_text()

    def source_of(self, panel: str) -> str:
        """Return the picture of a panel as the browser has it."""
        found = self.page.locator(f"#{panel} img").get_attribute("src")
        assert found is not None
        return found

    def until_changed(self, panel: str, before: str) -> None:
        """Wait until a panel shows another picture."""
        self.page.wait_for_function(
            "([panel, before]) => document.querySelector(panel + ' img').src !== before",
            arg=[f"#{panel}", before],
        )
