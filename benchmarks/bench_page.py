"""The page of ``hpcrowd inspect`` in a real browser: how long it takes to open, to step, to play.

Seconds count here, since somebody waits for them. A step is timed in the browser, from the click to
the last picture or table that changed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from page_cases import Reader, find_browser, started_browser, started_page  # noqa: E402

pytest.importorskip("playwright")
pytest.importorskip("solara")
pytestmark = pytest.mark.skipif(find_browser() is None, reason="no chromium")

KTH, CURIE = "KTH-SP2-1996-2.1-cln", "CEA-Curie-2011-2.1-cln"

#: Steps of a day that are timed.
STEPS = 10

#: Simulated days that are played.
MONTH = 30


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, started before anything is timed."""
    with started_browser() as found:
        yield found


#: Notes when a click came and when the page changed last, ms.
STOPWATCH = """() => {
  document.addEventListener('click', () => {
    window.clicked = window.changed = performance.now();
  }, true);
  const seen = change => {
    const node = change.target.nodeType === 3 ? change.target.parentElement : change.target;
    return node && node.closest('.hpcrowd-panel, .hpcrowd-time');
  };
  new MutationObserver(all => { if (all.some(seen)) window.changed = performance.now() })
    .observe(document.body,
             {subtree: true, attributes: true, childList: true, characterData: true});
}"""


def shown(reader: Reader, panel: str = "load-a") -> None:
    """Wait until a picture is there, drawn."""
    reader.page.wait_for_function(
        "panel => { const image = document.querySelector(panel + ' img');"
        " return image && image.complete && image.naturalWidth > 0 }",
        arg=f"#{panel}",
    )


def open_page(browser: Any, path: Path) -> tuple[float, float]:
    """Return seconds from the command to the pictures, and from the address to them."""
    began = time.perf_counter()
    with started_page(path) as page:
        served = time.perf_counter()
        reader = Reader(browser, page.address)
        shown(reader)
        done = time.perf_counter()
        reader.page.close()
    return done - began, done - served


@pytest.mark.parametrize(("trace", "target"), [(KTH, 5.0), (CURIE, 30.0)])
def bench_open(
    browser: Any,
    trace_path: Callable[[str], Path],
    figure: Callable[..., None],
    trace: str,
    target: float,
) -> None:
    """From the command, and from a click on the address, to the pictures."""
    path = trace_path(trace)
    open_page(browser, path)  # whatever is compiled, or not in memory yet
    found = [open_page(browser, path) for _ in range(3)]
    figure(
        f"page opens, {trace}, from the command", max(one for one, _ in found), "s", f"<= {target}"
    )
    figure(f"page opens, {trace}, from the address", max(one for _, one in found), "s", "<= 5")


@pytest.mark.parametrize(("trace", "target"), [(KTH, 0.5), (CURIE, 2.0)])
@pytest.mark.parametrize("part", ["cluster", "users", "user"])
def bench_step(
    browser: Any,
    trace_path: Callable[[str], Path],
    figure: Callable[..., None],
    trace: str,
    target: float,
    part: str,
) -> None:
    """A day by the button, until the new pictures are in the browser."""
    user = "&user=4" if part == "user" else ""
    with started_page(trace_path(trace)) as page:
        reader = Reader(browser, page.address, f"?tab={part}&at=4000000{user}")
        reader.page.evaluate(STOPWATCH)
        took = []
        for _ in range(STEPS):
            reader.press("Day")
            took.append(reader.page.evaluate("window.changed - window.clicked") / 1000)
        reader.page.close()
    figure(f"page, a day, {trace}, {part}", median(took), "s, median", f"<= {target}")
    figure(f"page, a day, {trace}, {part}, longest", max(took), "s", "")


def bench_play_a_month(
    browser: Any, trace_path: Callable[[str], Path], figure: Callable[..., None]
) -> None:
    """A month is played; meanwhile the page answers to clicks."""
    with started_page(trace_path(KTH)) as page:
        reader = Reader(browser, page.address, "?at=4000000")
        day = reader.time[:14]
        reader.click("Run")
        answers = []
        began = time.perf_counter()
        while time.perf_counter() - began < 20:
            clicked = time.perf_counter()
            reader.part("Users")
            reader.page.wait_for_selector("#users-a tbody tr")
            reader.part("Cluster")
            shown(reader)
            answers.append((time.perf_counter() - clicked) / 2)
        reader.press("Pause")
        played = reader.page.locator("#hpcrowd-link").get_attribute("href")
        assert played is not None
        assert day != reader.time[:14]
        seconds = int(played.split("at=")[1].split("&")[0]) - 4_000_000
        reader.page.close()
    figure("page plays, days in 20 s at 6 hours a step", seconds / 86_400, "days", "")
    figure("page plays, longest answer to a click", max(answers), "s", "<= 2")
