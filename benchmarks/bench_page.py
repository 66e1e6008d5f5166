"""The page of ``hpcrowd inspect`` in a real browser: how long it takes to open, to step, to play.

Seconds count here, since somebody waits for them. A step is timed in the browser, from the click to
the view that is drawn. Memory and processor time are those of all processes of the command: of what
forks share, each has its part; the files of libraries, shared with all of Python, are left out.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.page import Reader, find_browser, started_browser, started_page  # noqa: E402

pytest.importorskip("playwright")
pytest.importorskip("starlette")
pytestmark = [
    pytest.mark.skipif(find_browser() is None, reason="no chromium"),
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc of Linux"),
]

KTH, CURIE = "KTH-SP2-1996-2.1-cln", "CEA-Curie-2011-2.1-cln"

#: Seconds of the traces at which the machine is busy, and users who work there.
BUSY = {KTH: (10_000_000, 92), CURIE: (45_000_000, 10)}

#: Steps with each button, and frames with each movement, that are timed.
STEPS, FRAMES = 12, 20

#: s after which runs that no page shows are gone.
GONE = 10

#: s that the page plays, and that it is left alone.
PLAYED, LEFT_ALONE = 10, 20

#: Notes when a button was pressed and when the view after that was drawn, ms.
STOPWATCH = """() => {
  document.addEventListener('click', event => { window.clicked = event.timeStamp }, true);
  new MutationObserver(() => { window.drawn = performance.now() })
    .observe(document.body, {attributes: true, attributeFilter: ['data-shown']});
}"""

#: Turns the wheel over a chart again and again; ms until each change was painted.
WHEEL = """async ([chart, across, down, frames]) => {
  const glass = document.querySelector(`#${chart} .glass`);
  const box = glass.getBoundingClientRect();
  const painted = () => new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  const took = [];
  await painted();
  for (let frame = 0; frame < frames; frame++) {
    const turn = frame % 2 ? -1 : 1, began = performance.now();
    glass.dispatchEvent(new WheelEvent('wheel', {
      deltaX: turn * across, deltaY: turn * down, bubbles: true, cancelable: true,
      clientX: box.left + 0.6 * box.width, clientY: box.top + 60,
    }));
    await painted();
    took.push(performance.now() - began);
  }
  return took;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, started before anything is timed."""
    with started_browser() as found:
        yield found


def family(process: int) -> list[int]:
    """Return the numbers of a process and of all that descend from it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it has ended
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


def memory(process: int) -> float:
    """Return the memory of a process and all that descend from it, MB."""
    total = 0
    for one in family(process):
        try:
            words = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        found = re.search(r"^Pss_Anon:\s+(\d+) kB", words, re.MULTILINE)
        total += int(found[1]) if found else 0
    return total / 1000


def worked(processes: list[int]) -> float:
    """Return how long processors have worked for processes, s."""
    total = 0
    for one in processes:
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def settle(process: int) -> None:
    """Wait until the runs of a server have come to their ends."""
    quiet, limit = 0, time.monotonic() + 300
    while quiet < 3 and time.monotonic() < limit:
        before = worked(family(process))
        time.sleep(0.5)
        quiet = quiet + 1 if worked(family(process)) - before < 0.05 else 0


@contextmanager
def opened(browser: Any, address: str, query: str = "") -> Iterator[Reader]:
    """Open the page, and close it."""
    reader = Reader(browser, address, query)
    yield reader
    reader.close()


def open_once(browser: Any, path: Path) -> tuple[float, float]:
    """Return seconds from the command to the address, and from that to the first view."""
    began = time.perf_counter()
    with started_page(path) as page:
        served = time.perf_counter()
        with opened(browser, page.address):
            done = time.perf_counter()
    return served - began, done - served


@pytest.mark.parametrize(("trace", "target"), [(KTH, 3.0), (CURIE, 4.0)])
def bench_open(
    browser: Any,
    trace_path: Callable[[str], Path],
    figure: Callable[..., None],
    trace: str,
    target: float,
) -> None:
    """From the command to the address, and from the address to the first complete view."""
    path = trace_path(trace)
    open_once(browser, path)  # whatever is not in memory yet
    found = [open_once(browser, path) for _ in range(3)]
    figure(f"page, {trace}, command to address", median(one for one, _ in found), "s", "")
    figure(
        f"page, {trace}, address to first view",
        median(one for _, one in found),
        "s",
        f"<= {target}",
    )


@pytest.mark.parametrize(("trace", "target"), [(KTH, 150), (CURIE, 300)])
def bench_step(
    browser: Any,
    trace_path: Callable[[str], Path],
    figure: Callable[..., None],
    trace: str,
    target: float,
) -> None:
    """An hour and a day by the buttons, until the new view is drawn."""
    at, user = BUSY[trace]
    parts = {
        "cluster": "",
        "users": "&tab=users",
        "one user": f"&tab=user&user={user}",
        "two runs": "&two=1&b.scheduler=fcfs",
    }
    with started_page(trace_path(trace)) as page:
        for part, more in parts.items():
            with opened(browser, page.address, f"?at={at}&span=7{more}") as reader:
                settle(page.process.pid)
                reader.page.evaluate(STOPWATCH)
                for name in ("An hour on", "A day on", "An hour back"):
                    took = []
                    for _ in range(STEPS):
                        reader.press(name)
                        took.append(reader.page.evaluate("window.drawn - window.clicked"))
                    where = f"page, {trace}, {part}, {name.lower()}"
                    figure(where, median(took), "ms, median", f"<= {target}")


def bench_play(
    browser: Any, trace_path: Callable[[str], Path], figure: Callable[..., None]
) -> None:
    """Play, an hour with each picture, and change the speed meanwhile."""
    query = f"?at={BUSY[KTH][0]}&span=7"
    with started_page(trace_path(KTH)) as page, opened(browser, page.address, query) as reader:
        settle(page.process.pid)
        reader.click("Play")
        for name, key in (("an hour", ""), ("two hours", "ArrowRight")):
            if key:
                reader.page.locator("#speed").press(key)
            before, began = int(reader.data("shown")), time.perf_counter()
            reader.page.wait_for_timeout(1000 * PLAYED)
            shown = int(reader.data("shown")) - before
            each = shown / (time.perf_counter() - began)
            figure(f"page plays {name} a picture, {KTH}", each, "pictures/s", ">= 9.5")
        reader.click("Pause")


@pytest.mark.parametrize(("trace", "resets"), [(KTH, 120), (CURIE, 30)])
def bench_memory(
    browser: Any,
    trace_path: Callable[[str], Path],
    figure: Callable[..., None],
    trace: str,
    resets: int,
) -> None:
    """Begin the run again and again; close the page."""
    with started_page(trace_path(trace)) as page:
        server = page.process.pid
        settle(server)
        empty, processes = memory(server), len(family(server))
        with opened(browser, page.address) as reader:
            reader.press("Reset")
            settle(server)
            time.sleep(GONE)
            first = memory(server)
            for _ in range(resets):
                reader.press("Reset")
            settle(server)
            time.sleep(GONE)
            grown = 100 * (memory(server) / first - 1)
        time.sleep(GONE)
        left, others = memory(server), len(family(server)) - processes
    figure(f"page, {trace}, memory of a run that has ended", first, "MB", "")
    figure(f"page, {trace}, growth with {resets} resets", grown, "%", "<= 10")
    figure(f"page, {trace}, memory left 10 s after it closed", left - empty, "MB", "<= 20")
    figure(f"page, {trace}, processes left", others, "processes", "<= 0")


def bench_idle(
    browser: Any, trace_path: Callable[[str], Path], figure: Callable[..., None]
) -> None:
    """An open page that nobody touches."""
    with started_page(trace_path(KTH)) as page, opened(browser, page.address):
        settle(page.process.pid)
        time.sleep(GONE)
        for name, process in (("server", page.process.pid), ("browser", os.getpid())):
            whole = family(process)
            if name == "browser":  # the renderer of the page
                whole = [one for one in whole if _is_renderer(one)]
            before = worked(whole)
            time.sleep(LEFT_ALONE)
            share = 100 * (worked(whole) - before) / LEFT_ALONE
            figure(f"page, nobody touches it: {name}", share, "% of a core", "<= 0.5")


def _is_renderer(process: int) -> bool:
    try:
        return b"--type=renderer" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def bench_frames(
    browser: Any, trace_path: Callable[[str], Path], figure: Callable[..., None]
) -> None:
    """Zoom and pan with 20,000 jobs one by one, and with the load of all the run."""
    with started_page(trace_path(KTH)) as page:
        whole = {"20,000 jobs": ("at=20000000", "gantt-a"), "all jobs": ("at=29000000", "load-a")}
        for name, (at, chart) in whole.items():
            with opened(browser, page.address, f"?{at}&span=0") as reader:
                settle(page.process.pid)
                for how, turned in (("zoomed", (0, 60)), ("panned", (60, 0))):
                    took = reader.page.evaluate(WHEEL, [chart, *turned, FRAMES])
                    figure(f"page, {name} {how}", median(took), "ms/frame", "<= 100")
                    reader.until(lambda reader=reader: reader.data("busy") == "0")
