"""The page in a real browser that has no network.

With HPCROWD_PICTURES=FOLDER the pictures of the documentation are taken, too.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hpcrowd.environment import write_swf
from hpcrowd.environment.traces.trace import Trace
from page_cases import Reader, find_browser, started_browser, started_page
from PIL import Image
from population_cases import small_log

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright", reason="no playwright: pip install 'hpcrowd[dev]'")
pytest.importorskip("solara", reason="no solara: pip install 'hpcrowd[page]'")
pytestmark = pytest.mark.skipif(
    find_browser() is None, reason="no chromium: apt-get install chromium"
)

#: The pictures of the cluster and of a user.
CLUSTER = ("load-a", "submissions-a", "gantt-a")
USER = ("graph-a", "week-a", "pauses-a")

#: Shades of grey by which a picture differs from an empty one at least, standard deviation.
NOT_EMPTY = 8.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a network."""
    with started_browser() as found:
        yield found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, make_trace: Callable[..., Trace]) -> Path:
    """A log of twelve users over eight weeks."""
    path = tmp_path_factory.mktemp("page") / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


@pytest.fixture(scope="module")
def address(log: Path) -> Iterator[str]:
    """The address of a page that shows it."""
    with started_page(log) as served:
        yield served.address


@pytest.fixture
def reader(browser: Browser, address: str) -> Iterator[Reader]:
    """A user who has just opened the page; nothing may go wrong in the browser."""
    found = Reader(browser, address)
    yield found
    assert [] == found.told
    found.page.close()


def spread(reader: Reader, panel: str) -> float:
    """Return how much the shades of a panel differ, as it is on the screen."""
    shot = reader.page.locator(f"#{panel}").screenshot()
    return float(np.asarray(Image.open(io.BytesIO(shot)).convert("L"), float).std())


def picture(reader: Reader, name: str, height: int) -> None:
    """Keep a picture of the page for the documentation, where that is asked for."""
    folder = os.environ.get("HPCROWD_PICTURES")
    if folder:
        size = reader.page.viewport_size
        assert size is not None
        reader.page.set_viewport_size({"width": size["width"], "height": height})
        reader.page.mouse.move(0, 0)
        reader.page.wait_for_timeout(1000)
        reader.page.screenshot(path=str(Path(folder) / name))
        reader.page.set_viewport_size(size)


def test_opens_and_steps(reader: Reader) -> None:
    """The page opens at the beginning; an hour, a day and Reset move the clock and the pictures."""
    assert reader.time.startswith("Wed 1997-01-01 00:00:00 Europe/Stockholm")
    before = reader.source_of("load-a")
    reader.press("Hour")
    assert reader.time.startswith("Wed 1997-01-01 01:00:00")
    reader.press("Day")
    assert reader.time.startswith("Thu 1997-01-02 01:00:00")
    reader.until_changed("load-a", before)
    reader.press("Reset")
    assert reader.time.startswith("Wed 1997-01-01 00:00:00")


@pytest.mark.slow
def test_plays_and_pauses(reader: Reader) -> None:
    """Run lets time go by until Pause, and then it stands still."""
    reader.click("Run")
    reader.page.wait_for_function(
        "document.querySelector('.hpcrowd-time').innerText.includes('1997-01-04')"
    )
    reader.press("Pause")
    stopped = reader.time
    reader.page.wait_for_timeout(1000)
    assert stopped == reader.time
    reader.press("Day")
    assert stopped != reader.time


@pytest.mark.slow
def test_answers_while_it_plays(reader: Reader) -> None:
    """A user who looks at other parts of the page meanwhile sees them, and time continues."""
    reader.click("Run")
    for _ in range(4):
        before = reader.time
        reader.part("Users")
        reader.page.wait_for_selector("#users-a tbody tr")
        reader.part("Cluster")
        reader.page.wait_for_selector("#load-a img")
        reader.page.wait_for_function(
            "before => document.querySelector('.hpcrowd-time').innerText !== before", arg=before
        )
    reader.press("Pause")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor times of Linux")
def test_closing_the_page_stops_the_run(browser: Browser, log: Path) -> None:
    """A run that plays uses the processor until its page is closed, and no longer."""
    with started_page(log, options=("--port", "0")) as served:
        reader = Reader(browser, served.address)
        reader.click("Run")
        reader.page.wait_for_function(
            "document.querySelector('.hpcrowd-time').innerText.includes('1997-01-04')"
        )
        reader.page.close(run_before_unload=True)
        last = served.seconds()
        for _ in range(20):
            time.sleep(1)
            before, last = last, served.seconds()
            if last - before < 0.1:
                break
        assert last - before < 0.1
        again = Reader(browser, served.address)
        assert again.time.startswith("Wed 1997-01-01 00:00:00")
        again.page.close()


def test_every_panel_shows_something(browser: Browser, address: str) -> None:
    """At a busy hour no picture is empty, and the queue shows why jobs wait."""
    reader = Reader(browser, address, "?at=2786460")
    for panel in CLUSTER:
        assert spread(reader, panel) > NOT_EMPTY, panel
    rows = reader.page.locator("#queue-a tbody tr").all_inner_texts()
    assert any(re.search(r"requests \d+ processors", row) for row in rows), rows
    reader.part("Users")
    reader.page.wait_for_selector("#users-a tbody tr")
    assert 12 == reader.page.locator("#users-a tbody tr").count()
    reader.page.locator("#users-a tbody tr").nth(2).click()
    reader.page.wait_for_selector("#pauses-a img")
    for panel in USER:
        assert spread(reader, panel) > NOT_EMPTY, panel
    assert "released by completion of" in reader.page.locator("#decisions-a").inner_text()
    assert [] == reader.told
    reader.page.close()


@pytest.mark.slow
def test_users_are_sorted_and_searched(browser: Browser, address: str) -> None:
    """A click on a heading sorts by number, the search leaves what fits."""
    reader = Reader(browser, address, "?at=2786460&tab=users")
    table = reader.page.locator("#users-a")

    def column(place: int) -> list[str]:
        return table.locator(f"tbody tr td:nth-child({place})").all_inner_texts()

    done = [int(text) for text in column(3)]
    table.locator("th", has_text="Jobs done").click()
    assert sorted(done) == [int(text) for text in column(3)]
    table.locator("th", has_text="Jobs done").click()
    assert sorted(done, reverse=True) == [int(text) for text in column(3)]
    state = column(2)[0]
    table.get_by_label("Search").fill(state)
    reader.page.wait_for_timeout(300)
    assert {state} == set(column(2))
    assert [] == reader.told
    reader.page.close()


@pytest.mark.slow
def test_a_user_is_followed(browser: Browser, address: str) -> None:
    """Its next event changes its graph, and what it decided is shown in words."""
    reader = Reader(browser, address, "?tab=user&user=1")
    before = reader.source_of("graph-a")
    words = reader.page.locator(".hpcrowd-user-words").inner_text()
    assert words.startswith("User 1 (not yet), 0 jobs done")
    reader.press("Next event of user 1")
    reader.until_changed("graph-a", before)
    assert "0 jobs done, 1 running" in reader.page.locator(".hpcrowd-user-words").inner_text()
    frame = pd.read_csv(saved(reader, "graph-a", "CSV"))
    assert "running" in set(frame["state"])
    for _ in range(6):
        reader.press("Next event of user 1")
    frame = pd.read_csv(saved(reader, "graph-a", "CSV"))
    assert "finished" in set(frame["state"])
    assert [] == reader.told
    reader.page.close()


def saved(reader: Reader, panel: str, kind: str) -> Path:
    """Save a panel as a file and return where it is."""
    with reader.page.expect_download() as download:
        reader.page.locator(f"#{panel}").get_by_role("button", name=kind, exact=False).click()
    return Path(download.value.path())


@pytest.mark.slow
def test_panels_are_saved(browser: Browser, address: str) -> None:
    """A picture comes as PNG, SVG and CSV, under its name, and the second time as the first."""
    reader = Reader(browser, address, "?at=2786460")
    with Image.open(saved(reader, "load-a", "as PNG")) as image:
        assert image.size[0] > 700
    svg = saved(reader, "load-a", "as SVG").read_text()
    assert "<svg" in svg
    assert svg == saved(reader, "load-a", "as SVG").read_text()
    frame = pd.read_csv(saved(reader, "load-a", "as CSV"))
    assert {"begin_s", "processors_in_use", "jobs_waiting"} <= set(frame)
    assert 0 < frame["processors_in_use"].max() <= 8
    with Image.open(saved(reader, "queue-a", "as PNG")) as image:
        assert np.asarray(image.convert("L"), float).std() > NOT_EMPTY
    assert "<svg" in saved(reader, "queue-a", "as SVG").read_text()
    queue = pd.read_csv(saved(reader, "queue-a", "as CSV"))
    assert queue["reason"].str.len().min() > 5
    reader.page.close()


@pytest.mark.slow
def test_settings_apply_when_a_run_restarts(reader: Reader) -> None:
    """A larger machine is in the pictures after Apply, and a mistake is reported in one line."""
    page = reader.page
    reader.press("Day")
    page.get_by_text("A: log.swf").click()
    nodes = page.get_by_role("textbox", name="Processors")
    nodes.fill("3x")
    nodes.press("Tab")
    with reader.until_done():
        page.locator(".hpcrowd-apply-a").click()
    page.wait_for_selector("text=processors 3x")
    assert reader.time.startswith("Wed 1997-01-01 00:00:00")
    reader.press("Day")
    page.get_by_text("A: log.swf").first.click()
    page.wait_for_timeout(500)
    nodes = page.get_by_role("textbox", name="Processors")
    if not nodes.is_visible():
        page.get_by_text("A: log.swf").first.click()
    nodes.fill("zero")
    nodes.press("Tab")
    page.locator(".hpcrowd-apply-a").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    told = alert.inner_text()
    assert "processors 'zero'" in told
    assert "\n" not in told.strip()


@pytest.mark.slow
def test_two_runs_side_by_side(browser: Browser, address: str) -> None:
    """A second run with another scheduler continues with the first, and can be let go."""
    query = "?at=2786460&two=1&b.scheduler=fcfs"
    reader = Reader(browser, address, query, width=1800)
    assert spread(reader, "load-a") > NOT_EMPTY
    assert reader.source_of("load-a") != reader.source_of("load-b")
    assert reader.page.get_by_text("B: log.swf, think-time, fcfs").is_visible()
    before = [reader.source_of(f"load-{run}") for run in "ab"]
    reader.press("Day")
    for run, source in zip("ab", before, strict=True):
        reader.until_changed(f"load-{run}", source)
    reader.press("One run")
    assert 0 == reader.page.locator("#load-b").count()
    reader.press("Second run")
    reader.page.wait_for_selector("#load-b img")
    assert [] == reader.told
    reader.page.close()


@pytest.mark.slow
def test_a_link_restores_the_view(browser: Browser, address: str) -> None:
    """Who follows the link sees the same user at the same second under the same settings."""
    query = "?tab=user&user=3&at=900000&a.users=fluid&a.seed=4"
    first = Reader(browser, address, query)
    link = first.page.locator("#hpcrowd-link").get_attribute("href")
    assert link is not None
    second = Reader(browser, address, link)
    assert first.time == second.time
    assert "fluid" in second.page.get_by_text("A: log.swf").inner_text()
    words = [one.page.locator(".hpcrowd-user-words").inner_text() for one in (first, second)]
    assert words[0] == words[1]
    for panel in USER:
        assert first.source_of(panel) == second.source_of(panel), panel
    assert [] == first.told + second.told
    for one in (first, second):
        one.page.close()


@pytest.mark.slow
def test_a_link_that_makes_no_sense(browser: Browser, address: str) -> None:
    """It is reported, and the page opens at the beginning."""
    reader = Reader(browser, address, "?tab=cluster&at=soon")
    assert "at 'soon'" in reader.page.get_by_role("alert").inner_text()
    assert reader.time.startswith("Wed 1997-01-01 00:00:00")
    reader.page.close()


@pytest.mark.slow
def test_pages_do_not_share_a_model(browser: Browser, address: str) -> None:
    """Two at once: what one does leaves the other where it is."""
    one, two = (Reader(browser, address) for _ in range(2))
    one.press("Day")
    two.press("Hour")
    one.press("Day")
    assert one.time.startswith("Fri 1997-01-03 00:00:00")
    assert two.time.startswith("Wed 1997-01-01 01:00:00")
    assert [] == one.told + two.told
    for reader in (one, two):
        reader.page.close()


@pytest.mark.slow
def test_a_finished_run_is_played_back(
    browser: Browser, log: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    """A folder of results opens, is played, and has its log of decisions."""
    assert 0 == call("replay", log, "--log-decisions", "--out", tmp_path / "run")[0]
    with started_page(tmp_path / "run") as served:
        reader = Reader(browser, served.address, "?at=2786460&tab=user&user=2")
        assert "released by completion" in reader.page.locator("#decisions-a").inner_text()
        reader.part("Cluster")
        for panel in CLUSTER:
            assert spread(reader, panel) > NOT_EMPTY, panel
        reader.press("Day")
        assert [] == reader.told
        reader.page.close()


@pytest.mark.slow
@pytest.mark.traces
def test_a_real_log(browser: Browser, traces: Path) -> None:
    """KTH in a busy week: every panel shows something, for the cluster and for the busiest user."""
    name = "KTH-SP2-1996-2.1-cln.swf.gz"
    if not (traces / name).exists():
        pytest.skip(f"no {name} in {traces}")
    with started_page(traces / name) as served:
        reader = Reader(browser, served.address, "?at=2000000")
        for panel in CLUSTER:
            assert spread(reader, panel) > NOT_EMPTY, panel
        assert "40 waiting jobs" in reader.page.locator("#queue-a").inner_text()
        assert "first in the queue: requests 80 processors, 4 are free" in (
            reader.page.locator("#queue-a tbody tr").first.inner_text()
        )
        picture(reader, "inspect-cluster.png", 920)
        reader.part("Users")
        reader.page.wait_for_selector("#users-a tbody tr")
        reader.page.locator("#users-a th", has_text="Jobs done").dblclick()
        picture(reader, "inspect-users.png", 990)
        reader.page.get_by_label("Search").fill("13")
        reader.page.locator("#users-a tbody tr", has_text="13").first.click()
        reader.page.wait_for_selector("#pauses-a img")
        for panel in USER:
            assert spread(reader, panel) > NOT_EMPTY, panel
        picture(reader, "inspect-user.png", 1180)
        assert [] == reader.told
        reader.page.close()
        query = "?at=2000000&two=1&b.processors=1.5x&b.users=fluid"
        reader = Reader(browser, served.address, query, width=1700)
        for run in "ab":
            assert spread(reader, f"submissions-{run}") > NOT_EMPTY
        picture(reader, "inspect-two.png", 1000)
        assert [] == reader.told
        reader.page.close()
