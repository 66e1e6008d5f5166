"""The page in a real browser that has no network: what a reader sees and does.

With HPCROWD_PICTURES=FOLDER the pictures of the documentation are taken, too.
"""

import os
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pandas as pd
import pytest
from hpcrowd.environment.clock import DAY, HOUR
from PIL import Image

from tests.support.page import BUSY, NOT_EMPTY, Reader, find_browser, started_page

pytest.importorskip("playwright", reason="no playwright: pip install 'hpcrowd[dev]'")
pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="no chromium: apt-get install chromium"),
]

#: The pictures of the cluster and of a user.
CLUSTER = ("load-a", "submissions-a", "gantt-a")
USER = ("graph-a", "week-a", "pauses-a")

#: Two users, one of whom waits for the other.
NAMES = """submit,start,run_time,processors,requested_time,user_name
60,60,3600,8,3600,ada
120,3660,600,2,1200,bob
7200,7200,900,1,1800,ada
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The address of a page on a log of two hours, whose users have names."""
    path = tmp_path_factory.mktemp("names") / "names.csv"
    path.write_text(NAMES)
    with started_page(path) as served:
        yield served.address


def picture(reader, name, height):
    """Keep a picture of the page for the documentation, where that is asked for."""
    folder = os.environ.get("HPCROWD_PICTURES")
    if folder:
        size = reader.page.viewport_size
        assert size is not None
        reader.page.set_viewport_size({"width": size["width"], "height": height})
        reader.page.mouse.move(0, 0)
        reader.page.evaluate("scrollTo(0, 0)")
        reader.page.wait_for_timeout(1000)
        reader.page.screenshot(path=str(Path(folder) / name))
        reader.page.set_viewport_size(size)


def test_opens_busy_and_steps(at):
    """The page opens where jobs wait; buttons move time on, to the end, and back again."""
    reader = at("")
    first, start = reader.at, reader.time
    assert reader.rows("queue-a")
    moves = {"An hour on": HOUR, "A day on": DAY, "A day back": -DAY, "An hour back": -HOUR}
    for name, moved in moves.items():
        before = reader.at
        reader.press(name)
        assert before + moved == reader.at
    assert (first, start) == (reader.at, reader.time)
    reader.press("To the end")
    assert reader.time.endswith("finished")
    reader.press("To the start")
    assert reader.time.startswith("Wed 1 Jan 1997 09:34:34 Europe/Stockholm")
    reader.press("Busiest hour")
    assert reader.rows("queue-a")
    box = reader.page.locator("#timeline").bounding_box()
    assert box is not None
    with reader.until_shown():
        reader.page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 30)
    assert reader.at > BUSY
    with reader.until_shown():
        reader.page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + 30)
    assert reader.at < BUSY
    with reader.until_shown():
        reader.page.get_by_label("Go to local time").fill("1997-01-20T12:30:00")
        reader.page.keyboard.press("Enter")
    assert reader.time.startswith("Mon 20 Jan 1997 12:30:00")


def test_every_panel_shows_something(reader):
    """At a busy hour no picture is empty, and the queue shows why jobs wait."""
    assert 0 == reader.page.locator('#power-a, [data-key="energy_kwh"]').count()
    with Image.open(reader.saved("load-a", "PNG")) as image:
        assert image.size[0] > 700
    assert "<svg" in reader.saved("load-a", "SVG").read_text()
    frame = pd.read_csv(reader.saved("load-a", "CSV"))
    assert {"begin_s", "processors_in_use", "jobs_waiting"} <= set(frame)
    assert 0 < frame["processors_in_use"].max() <= 8
    queue = pd.read_csv(reader.saved("queue-a", "CSV"))
    assert queue["reason"].str.len().min() > 5
    for panel in (*CLUSTER, "timeline"):
        assert reader.spread(panel) > NOT_EMPTY, panel
    for number in range(3):  # of a chart, the most in view is not less than what is now
        chart = reader.page.locator("#load-a [role=application]").nth(number)
        words = chart.get_attribute("aria-label") or ""
        found = re.search(r"now ([\d,]+).* range: ([\d,]+)", words)
        assert found is not None
        now, most = (int(one.replace(",", "")) for one in found.groups())
        assert now <= most
    rows = reader.rows("queue-a")
    assert any(re.search(r"requests \d+ processors", row) for row in rows), rows
    reader.part("Users")
    assert 12 == len(reader.rows("users-a"))
    reader.page.locator("#users-a tbody tr").nth(2).click()
    reader.part("One user")
    for panel in USER:
        assert reader.spread(panel) > NOT_EMPTY, panel
    assert "released by completion of" in reader.page.locator("#decisions-a").inner_text()
    assert reader.rows("jobs-a")
    reader.part("Who slows whom")
    assert reader.rows("delays-a")


def test_to_the_end_while_it_is_not_known(at, slow_scenario, serve):
    """A long run is brought to its end, with progress in words, and can be stopped on the way."""
    served = serve(slow_scenario, "--trust")
    reader = at("", served.address)
    first = reader.at
    reader.click("To the end")
    reader.page.get_by_role("button", name="Stop", exact=True).click()
    reader.until(lambda: reader.data("busy") == "0")
    assert reader.at > first
    reader.click("To the end")
    reader.until(lambda: reader.time.endswith("finished"))


def test_one_job(reader):
    """Tooltips name job, user and times; a click chooses the job everywhere."""
    places = reader.boxes("gantt-a")
    jobs = [(x, y, told) for x, y, told in places if told.startswith("Job ")]
    assert len(jobs) > 5
    for _, _, told in jobs:
        assert all(word in told for word in ("user", "processor", "waited")), told
    x, y, told = jobs[len(jobs) // 2]
    number = re.findall(r"\d+", told)[0]
    reader.page.mouse.click(x, y)
    reader.until(lambda: f"job={number}" in reader.page.url)
    with reader.until_shown():
        reader.page.locator("#queue-a tbody tr").first.click()
    lit = reader.page.evaluate(
        "[...hpcrowd.charts].map((one) => one.sources.lit?.data.left.length ?? 0)"
    )
    assert max(lit) > 0, "nothing is lit up in the chart"
    told = reader.page.locator("#queue-a").inner_text()
    assert "asks for" in told or "requests" in told


def test_wheel_and_drag_move_all_charts(reader):
    """Zoomed with the wheel and moved by dragging, the range is in the address and all charts."""
    box = reader.page.locator("#gantt-a [role=application]").bounding_box()
    assert box is not None
    before = reader.words("load-a")
    reader.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    with reader.until_shown():
        reader.page.mouse.wheel(0, -300)
    reader.until(lambda: "from=" in reader.page.url)
    zoomed = reader.page.url
    assert before != reader.words("load-a")
    with reader.until_shown():
        reader.page.mouse.down()
        reader.page.mouse.move(box["x"] + box["width"] / 2 + 90, box["y"] + 100, steps=4)
        reader.page.mouse.up()
    reader.until(lambda: zoomed != reader.page.url)
    reader.press("28 days")
    reader.until(lambda: "from=" not in reader.page.url)


def test_f5_and_a_sent_link_show_the_same(reader):
    """The address holds time, part, user and settings."""
    reader.part("Users")
    reader.page.locator("#users-a tbody tr").nth(3).click()
    reader.part("One user")
    reader.press("An hour on")
    reader.until(lambda: f"at={BUSY + HOUR}" in reader.page.url)
    reader.page.locator("#week-a").get_by_role("button", name="Hide").click()
    reader.until(lambda: "hidden=week" in reader.page.url)
    there = reader.time, reader.words("graph-a"), reader.rows("jobs-a")
    reader.page.reload()
    reader.ready()
    assert there == (reader.time, reader.words("graph-a"), reader.rows("jobs-a"))
    assert not reader.page.locator("#week-a [role=application]").is_visible()
    # The cookie is that of the first page: a link works in the same browser.
    other = reader.context.new_page()
    other.goto(reader.page.url)
    other.wait_for_selector('body[data-ready="1"][data-busy="0"]')
    assert there[0] == other.locator("#clock").inner_text()
    other.close()


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("at=1e99&to=1&from=nan&user=1.5&job=x&span=99&tab=x", r"at=8101&user=bob$"),
        ("from=-1e300&to=1e300&at=-5&hidden=nothing&theme=x", r"at=60&hidden=nothing$"),
        ("at=300&two=1&b.scheduler=best&edits=[[&since=3", r"at=300$"),
        ("at=300&two=1&edits=[{}]&since=-3", r"at=300$"),
    ],
)
def test_nonsense_in_the_address(at, names, query, kept):
    """Whatever an address holds, the page opens on what of it makes sense."""
    reader = at(query, names)
    reader.until(lambda: re.search(kept, reader.page.url), reader.page.url)
    assert reader.rows("queue-a") or reader.at != 300


def test_users_by_name(at, names):
    """Addresses name users; a short log opens in the middle of what happens, shown whole."""
    reader = at("user=ada&tab=user", names)
    reader.page.locator("summary").first.click()
    notes = reader.page.locator("#runs").inner_text()
    assert "does not give the size of the machine" in notes
    assert "set it with --processors" in notes
    assert "ada" in reader.page.locator("#words-a").inner_text()
    assert "user=ada" in reader.page.url
    reader.page.get_by_label("User", exact=True).select_option(label="bob")
    reader.until(lambda: "user=bob" in reader.page.url)
    reader.part("Cluster")
    assert reader.rows("queue-a")
    reader.press("To the end")
    assert reader.time == "week 1 Mon 02:15:01, finished"
    told = reader.page.locator("#numbers").inner_text()
    assert re.search(r"Utilization\n([\d.]+ %)\nwhole run \1", told)
    field = reader.page.get_by_label("Go to local time")
    assert field.input_value() == "week 1 Mon 02:15:01"
    with reader.until_shown():
        field.fill("week 1 Mon 00:10:30")
        field.press("Enter")
    assert reader.at == 630
    reader.click("Repeat with 5 seeds")
    numbers = reader.page.locator("#numbers")
    reader.until(lambda: "nothing in this run is drawn at random" in numbers.inner_text())
    assert "\u00b1" not in numbers.inner_text()
    reader = at("user=adda&tab=user", names)
    assert 'User "adda" is not in this run.' in reader.page.locator("#alert").inner_text()


def test_two_logs_with_different_clocks(at, log, tmp_path, serve):
    """The page says whose times it shows; a short difference is not rounded to nothing."""
    (tmp_path / "names.csv").write_text(NAMES)
    served = serve(tmp_path / "names.csv", log)
    reader = at("at=3000&tab=delays&user=bob", served.address)
    told = reader.page.locator("#banner").inner_text()
    assert "local times are those of run A" in told
    assert any(re.search(r"ada\tbob\t1\.\d", row) for row in reader.rows("delays-a"))


def test_two_runs_and_their_difference(at):
    """Another policy beside the first: numbers with the difference, users sorted by it."""
    reader = at(f"at={BUSY}&two=1&b.scheduler=fcfs", width=1800)
    assert reader.words("load-a") != reader.words("load-b")
    told = reader.page.locator("#numbers").inner_text()
    assert re.search(r"B . A", told), told
    reader.part("Differences")
    assert 12 == len(reader.rows("differences"))
    reader.part("Users")
    for _ in range(2):
        reader.page.locator("#users-a thead").get_by_text("Jobs done").click()
        reader.page.wait_for_timeout(200)
        one, two = (reader.page.locator(f"#users-{run} th[aria-sort]") for run in "ab")
        assert one.all_inner_texts() == two.all_inner_texts()
        assert one.first.get_attribute("aria-sort") == two.first.get_attribute("aria-sort")
    reader.part("Cluster")
    ticks = "[...hpcrowd.charts].filter((one) => one.time).map((one) => one.xTicker.ticks.join())"
    reader.until(lambda: len(set(reader.page.evaluate(ticks))) == 1, "axes with other ticks")
    reader.press("One run")
    assert 0 == reader.page.locator("#load-b").count()


def test_what_may_come(reader):
    """Fans, starts of waiting jobs, and two ways to submit; the address keeps what was asked."""
    page = reader.page
    reader.part("Forecast")
    page.wait_for_selector("#starts-a tbody tr")
    assert reader.spread("fans-a") > NOT_EMPTY
    assert re.search(r"median [\d.]+, 90 % between", reader.words("fans-a"))
    assert all(re.search(r"\d\d:\d\d|later", row) for row in reader.rows("starts-a"))
    first = page.get_by_role("group", name="If you submitted now")
    first.get_by_label("processors of each job").fill("many")
    page.get_by_role("button", name="When would they start?").click()
    problem = page.locator("#ask [role=alert]")
    assert '"many" processors is not possible' in problem.inner_text()
    assert page.locator("#ask [aria-invalid=true]").count() == 1
    first.get_by_label("processors of each job").fill("4")
    first.get_by_label("requested time").fill("6 h")
    instead = page.get_by_role("group", name="or instead")
    for label, text in (("number", "4"), ("processors", "1"), ("time", "1.5 h")):
        instead.get_by_label(label).fill(text)
    page.keyboard.press("Enter")
    reader.until(lambda: "ends first in" in page.locator("#starts-a").inner_text())
    rows = reader.rows("starts-a")
    assert ["if submitted now", "or instead"] == [row.split("\t")[0] for row in rows[:2]]
    assert not problem.is_visible()
    reader.until(lambda: "jobs=1x4x21600%2C4x1x5400" in page.url)
    assert [4, 1] == pd.read_csv(reader.saved("starts-a", "CSV"))["processors"][:2].tolist()
    first.get_by_label("processors of each job").fill("9")
    page.keyboard.press("Enter")
    reader.until(lambda: "the machine has 8" in problem.inner_text())
    page.get_by_role("button", name="Remove the jobs").click()
    reader.until(lambda: reader.rows("starts-a") and len(reader.rows("starts-a")) == len(rows) - 2)
    reader.press("A day on")
    reader.until(lambda: page.locator(".stale").count() == 0)
    assert "Mon 3 Feb" in page.locator("#fans-a .about").inner_text()


def test_edges_go_around_boxes(at):
    """In the graph, an edge along a lane bends around boxes between; its tooltip says the wait."""
    reader = at(f"at={BUSY}&tab=user&user=6&span=0")
    edges = reader.page.evaluate(
        """() => {
            const { data } = [...hpcrowd.charts].find((one) => one.sources.own).sources.edges;
            return Array.from(data.y0, (y, place) => [y, data.y1[place], data.cy0[place]]);
        }"""
    )
    along = [bend - y for y, end, bend in edges if y == end]
    assert min(along) == 0, "straight to the next box"
    assert max(along) > 0.5, "around boxes"
    told = [words for _, _, words in reader.boxes("graph-a")]
    assert any(re.search(r"waits for \d+\nthink time", one) for one in told)


def test_a_typo_in_a_setting_keeps_the_run(reader):
    """One line beside the field explains a mistake; a right value begins the run anew."""
    page = reader.page
    page.locator("summary").first.click()
    nodes = page.get_by_role("textbox", name="Processors")
    nodes.fill("zero")
    page.get_by_role("button", name="Apply").first.click()
    page.get_by_text("processors 'zero'").first.wait_for()
    assert reader.rows("queue-a"), "the run is still there"
    nodes.fill("3x")
    with reader.until_shown():
        page.get_by_role("button", name="Apply").first.click()
    reader.until(lambda: "a.processors=3x" in page.url)
    reader.told[:] = [one for one in reader.told if "zero" not in one]


def test_a_mistake_in_the_file_is_corrected(at, own_log, serve):
    """A page opened on a scenario with a mistake says what to do; Reset then shows the run."""
    path = own_log.with_name("what.toml")
    text = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n'
    path.write_text(text)
    served = serve(path)
    reader = at("", served.address)
    path.write_text(text + 'scheduler = "bestt"\n')
    reader.page.reload()
    reader.page.get_by_text("then press Reset").wait_for()
    assert "what.toml, line 4" in reader.page.locator("#alert").inner_text()
    path.write_text(text + 'scheduler = "fcfs"\n')
    reader.click("Reset")
    reader.ready()
    assert "fcfs" in reader.page.locator("#settings-a h2").inner_text()
    assert reader.rows("queue-a")
    assert not reader.page.locator("#alert").is_visible()


def test_going_on_from_here_as_a_second_run(reader):
    """A user who is given another behaviour goes on in run B, beside run A."""
    page = reader.page
    reader.part("Users")
    page.locator("#users-a tbody tr").nth(2).click()
    reader.part("One user")
    page.get_by_label("Behaviour").first.select_option("rigid")
    with reader.until_shown():
        page.get_by_role("button", name=re.compile("Go on from here")).click()
    reader.until(lambda: "since=" in page.url)
    assert page.locator("#graph-b").count() == 1
    reader.press("A day on")
    assert BUSY + DAY == reader.at
    page.locator("#settings-b summary").click()
    page.locator("#setting-b-scheduler").select_option("fcfs")
    reader.press("Apply the settings of run B")
    assert "lost 1 change by hand" in page.locator("#alert").inner_text()
    assert "since=" not in page.url


HOSTILE = """<!doctype html><title>evil</title><script>
window.told = [];
const socket = new WebSocket("ws://127.0.0.1:PORT/live");
socket.onopen = () => told.push("websocket opened");
socket.onerror = () => told.push("websocket refused");
const script = document.createElement("script");
script.src = "http://127.0.0.1:PORT/static/main.js";
script.onload = () => told.push("script loaded");
document.head.append(script);
const frame = document.createElement("iframe");
frame.src = "http://127.0.0.1:PORT/";
document.documentElement.append(frame);
</script><form method="post" action="http://127.0.0.1:PORT/"><button>go</button></form>
<a href="http://127.0.0.1:PORT/?at=36000">a link</a>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a word."""

    def log_message(self, *arguments):
        """Say nothing."""


def test_a_hostile_page_in_the_same_browser(reader, address, tmp_path):
    """It can open no websocket, load nothing, frame nothing, and its own page is not ours."""
    port = urlsplit(address).port
    (tmp_path / "evil.html").write_text(HOSTILE.replace("PORT", str(port)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    evil = reader.context.new_page()  # of the browser that has the cookie
    try:
        # Another name of this machine is another site, to which cookies of ours do not belong.
        for host in ("127.0.0.1", "localhost"):
            evil.goto(f"http://{host}:{server.server_port}/evil.html")
            evil.wait_for_function("told.includes('websocket refused')")
            evil.wait_for_timeout(500)
            assert ["websocket refused"] == evil.evaluate("told")
            assert evil.frames[1].url.startswith(("chrome-error:", "about:")), evil.frames[1].url
        # A link that a reader follows does open the page, where the browser has its cookie.
        evil.get_by_role("link").click()
        evil.wait_for_selector('body[data-ready="1"]')
        assert "36000" == evil.evaluate("document.body.dataset.at")
        evil.go_back()
        evil.get_by_role("button", name="go").click()
        evil.wait_for_load_state()
        assert "hpcrowd: origin" in evil.content()
    finally:
        evil.close()
        server.shutdown()
        server.server_close()


def test_the_server_is_killed_and_started_again(browser, log, tmp_path, monkeypatch):
    """The page says so, and goes on at the same second when the server is there again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with started_page(log) as first:
        port = str(urlsplit(first.address).port)
    with started_page(log, options=("--port", port)) as first:
        reader = Reader(browser, first.address, f"?at={BUSY}&two=1&b.scheduler=fcfs")
        reader.press("An hour on")
        before = reader.time, reader.rows("queue-a")
        first.process.kill()
        first.process.wait()
        reader.page.get_by_text("The server is gone").wait_for()
    shown = int(reader.data("shown"))
    with started_page(log, options=("--port", port)):
        reader.until(lambda: int(reader.data("shown")) > shown, "the page did not come back")
        reader.until(lambda: reader.data("busy") == "0")
        assert before == (reader.time, reader.rows("queue-a"))
        reader.press("An hour on")
        assert BUSY + 2 * HOUR == reader.at
        reader.page.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor times of Linux")
def test_an_open_page_is_idle(at, log, serve):
    """Nobody touches it: the server and its processes use less than 0.5 % of a core."""
    served = serve(log)
    reader = at("", served.address)
    reader.page.wait_for_timeout(3000)
    before = served.seconds()
    reader.page.wait_for_timeout(6000)
    assert served.seconds() - before < 0.03


@pytest.mark.parametrize("currency", ["EUR", "SEK"])
def test_energy(at, powered_log, currency, serve):
    """Two runs show their energy and its difference, and a chart, which is read aloud."""
    paths = []
    for unit, scheduler in (("EUR", "easy"), (currency, "fcfs")):
        power = powered_log.with_name(f"power_{scheduler}.toml")
        text = powered_log.with_name("power.toml").read_text()
        power.write_text(text.replace("price = 0.3", f'price = 0.3\ncurrency = "{unit}"'))
        paths.append(powered_log.with_name(f"{scheduler}.toml"))
        paths[-1].write_text(
            '[scenario]\nkind = "replay"\ntrace = "log.swf"\n'
            f'power = "{power.name}"\nscheduler = "{scheduler}"\n'
        )
    served = serve(*paths)
    reader = at(address=served.address)
    found = reader.page.locator('[data-key="energy_kwh"]').inner_text()
    assert re.search(r"A\s+[\d.]+ kWh.*B\s+[\d.]+ kWh.*kWh (better|worse)", found, re.S), found
    found = reader.page.locator('[data-key="energy_cost"]').inner_text()
    assert re.search(rf"A\s+[\d.,]+ EUR.*B\s+[\d.,]+ {currency}", found, re.S), found
    compared = re.search("better|worse|the same", found) is not None
    assert compared is (currency == "EUR"), found
    for panel in ("power-a", "power-b"):
        assert "Power, kW, cooling included, now" in reader.words(panel)
        assert reader.spread(panel) > NOT_EMPTY
    assert b"carbon_g_per_kwh" in reader.saved("power-a", "CSV").read_bytes()


@pytest.mark.traces
def test_a_real_log(at, traces, serve):
    """KTH in a busy week: every panel shows something, for the cluster and for the busiest user."""
    busy = "at=2000000"
    served = serve(traces / "KTH-SP2-1996-2.1-cln.swf.gz")
    reader = at(busy, served.address)
    for panel in CLUSTER:
        assert reader.spread(panel) > NOT_EMPTY, panel
    assert "40 waiting jobs" in reader.page.locator("#queue-a").inner_text()
    assert "first in the queue: requests 80 processors, 4 are free" in reader.rows("queue-a")[0]
    with reader.until_shown():
        reader.page.locator("#queue-a tbody tr").first.click()
    picture(reader, "inspect-cluster.png", 1180)
    reader = at(f"{busy}&tab=user&user=13", served.address)
    for panel in USER:
        assert reader.spread(panel) > NOT_EMPTY, panel
    picture(reader, "inspect-user.png", 1500)
    reader.part("Who slows whom")
    picture(reader, "inspect-delays.png", 800)
    asked = "tab=forecast&days=7&jobs=1x64x43200,32x2x43200"
    reader = at(f"{busy}&{asked}", served.address)
    reader.page.wait_for_selector("#starts-a tbody tr")
    reader.page.wait_for_selector("#ask progress", state="hidden")
    picture(reader, "inspect-forecast.png", 1180)
    reader = at(f"{busy}&two=1&b.processors=2x", served.address, width=1700)
    for run in "ab":
        assert reader.spread(f"submissions-{run}") > NOT_EMPTY
    picture(reader, "inspect-two.png", 1180)
