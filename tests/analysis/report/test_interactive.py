"""The interactive report: one file, the same bytes each time, charts that answer to the pointer."""

import json
import re
import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import read_trace, write_swf
from hpcrowd.analysis.report.figures import RUN_FIGURES
from hpcrowd.errors import UnavailableError
from hpcrowd.pictures import report_html
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.page import find_browser
from tests.support.reports import Page, busy_trace

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")

from hpcrowd.analysis.report.interactive import CHARTS, duration_texts, texts_of, wall_of
from hpcrowd.environment.clock import DAY, Clock

#: What is special with each run.
KINDS = ("plain", "platform", "visits", "record", "unrecorded", "one job", "no clock", "empty")


def charts_in(page):
    """Return the places of charts in a page."""
    return re.findall(r'<div id="(chart-\d+)"', page)


@pytest.mark.parametrize("kind", KINDS)
def test_every_run_has_a_page(runs, kind):
    """Runs of every kind are drawn; one without jobs has no charts, and then no scripts."""
    run = runs[kind]
    text = report_html([run], interactive=True)
    assert (kind == "empty") == (charts_in(text) == []) == ("<script>" not in text)
    if kind == "empty":
        return
    begin = text.rindex('[{"docid": "report"')
    items = json.loads(text[begin : text.index("}]", text.index('"root_ids"', begin)) + 2])
    assert charts_in(text) == list(items[0]["roots"].values())
    assert 2 == text.count("<script>") == text.count("</script>")
    assert [] == re.findall(r"<script[^>]+src|<link|@import", text)
    policy = "img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    assert f'Content-Security-Policy" content="default-src \'none\'; {policy}"' in text
    assert len(text) < 3_000_000
    assert kind != "plain" or text == report_html([run], interactive=True)
    page = Page(re.sub(r"<script>.*?</script>", "", text, flags=re.S))
    shown = [name for name, one in RUN_FIGURES.items() if one.shown(run)]
    assert len(shown) == len(page.all("figcaption"))
    labels = [one["aria-label"] for one in page.all("figure") if "aria-label" in one]
    assert len(shown) - len(labels) == len(page.all("img"))
    titles = [RUN_FIGURES[name].title for name in shown if name in CHARTS]
    drawn = [title for title in titles if any(label.startswith(title) for label in labels)]
    assert len(labels) == len(drawn)
    assert kind == "one job" or titles == drawn  # its waits have no chart


#: A user who tries to get into the page.
INTRUDER = '<b id="in">x</b></script><script>document.title="in"</script><!--'


def test_names_cannot_get_into_the_page(tmp_path):
    """Names of users stay data, whatever they contain."""
    head = "JobID|User|Submit|Start|End|State|AllocCPUS|TimelimitRaw"
    times = "|".join(f"2024-01-0{{}}T{at}:00" for at in ("08:00", "08:10", "20:00"))
    lines = [f"{n}|{INTRUDER}|{times.format(n, n, n)}|COMPLETED|4|900" for n in range(1, 6)]
    (tmp_path / "jobs.txt").write_text("\n".join([head, *lines, ""]))
    run = replay(read_trace(tmp_path / "jobs.txt"), users="rigid", processors=4)
    text = report_html([run], interactive=True)
    assert "document.title=" in text
    assert 2 == text.count("</script>")
    assert '<b id="in">' not in re.sub(r"<script>.*?</script>", "", text, flags=re.S)


def test_several_runs_share_their_time_axis(runs):
    """In a report on two runs the charts over time have one axis that covers both."""
    text = report_html([runs["plain"], runs["platform"]], interactive=True)
    assert len(charts_in(text)) >= 4
    document = text[text.rindex('{"report":') :]
    axes = re.findall(r'"x_range":\{"(?:type":"object","name":"Range1d",)?"?id":"(m\d+)"', document)
    assert len(set(axes)) < len(axes) >= 4


def test_local_times_are_on_the_axis():
    """Places on the time axis are local times in ms as if they were UTC, and texts are local."""
    nominal, clock = Clock(), Clock(953852400, ZoneInfo("Europe/Stockholm"))
    assert [0.5, 2.0] == wall_of(nominal, np.array([DAY // 2, 2 * DAY])).tolist()
    assert ["12.0 h since the origin"] == texts_of(nominal, np.array([DAY // 2]))
    assert ["Fri 2000-03-24 00:00"] == texts_of(clock, np.array([0]))
    midnight = datetime(2000, 3, 24, tzinfo=UTC).timestamp()
    assert [1000 * midnight] == wall_of(clock, np.array([0])).tolist()
    assert ["-", "-60 s", "2.0 h"] == duration_texts(np.array([np.nan, -60, 7200]))


def test_without_bokeh(runs, monkeypatch):
    """Where Bokeh is not installed, the message says how to get it."""
    monkeypatch.setitem(sys.modules, "bokeh.document", None)
    with pytest.raises(UnavailableError, match=r'--interactive: Bokeh.*"hpcrowd\[page\]"'):
        report_html([runs["plain"]], interactive=True)


def test_command(call, tmp_path, make_trace):
    """The option writes such a page, which names it among the commands that make it again."""
    log, page = tmp_path / "log.swf", tmp_path / "page.html"
    write_swf(busy_trace(make_trace), log)
    assert (0, "") == call("report", log, "-o", page, "--interactive")[:2]
    assert charts_in(page.read_text())
    assert f"-o {page} --interactive" in page.read_text()


def chart_of(tab, words):
    """Return the place of the chart with a title."""
    return tab.evaluate(
        "words => [...document.querySelectorAll('.chart-title')]"
        ".find(one => one.textContent.startsWith(words)).nextElementSibling.id",
        words,
    )


def point_at(tab, chart, across=0.5):
    """Move the pointer over a chart."""
    place = tab.locator(f"#{chart}")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    x, y = box["x"] + across * box["width"], box["y"] + 0.6 * box["height"]
    tab.mouse.move(x - 5, y)
    tab.mouse.move(x, y)


def range_of(tab, chart):
    """Return the time axis of a chart as it is shown."""
    return tab.evaluate(
        "place => { const model = [...Bokeh.documents[0].roots()].find(root => "
        "Bokeh.index.get_by_id(root.id).el.closest('#' + place));"
        " return [model.x_range.start, model.x_range.end]; }",
        chart,
    )


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no chromium: apt-get install chromium")
def test_what_a_reader_sees_and_does(browser, runs, tmp_path):
    """Tooltips have numbers; dragging one chart moves the others over time, not the busiest day."""
    told: list[str] = []  # nothing may go wrong in the browser, and nothing leave it
    (tmp_path / "report.html").write_text(report_html([runs["plain"]], interactive=True))
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.on("console", lambda one: one.type == "error" and told.append(one.text))
    tab.on("pageerror", lambda error: told.append(str(error)))
    local = ("file:", "data:", "blob:")
    tab.on("request", lambda one: one.url.startswith(local) or told.append(one.url[:200]))
    tab.goto((tmp_path / "report.html").as_uri())
    tab.wait_for_selector("[data-charts=drawn]", state="attached")
    titles = ("Processors in use", "Jobs in the queue", "Jobs so far", "Jobs on processors")
    use, queue, so_far, day = (chart_of(tab, title) for title in titles)
    point_at(tab, day)
    tooltip = tab.locator(".bk-Tooltip")
    for name in ("job", "user", "processors", "asked for", "waited", "started"):
        tooltip.get_by_text(name, exact=True).first.wait_for(state="visible")
    point_at(tab, use)
    tooltip.get_by_text("as recorded", exact=True).first.wait_for(state="visible")
    before, of_day = range_of(tab, use), range_of(tab, day)
    tab.mouse.down()
    point_at(tab, use, 0.3)
    tab.mouse.up()
    for _ in range(100):  # a busy machine answers later
        if (after := range_of(tab, use)) != before:
            break
        tab.wait_for_timeout(50)
    assert after[0] > before[0]
    assert after == range_of(tab, queue) == range_of(tab, so_far)
    assert of_day == range_of(tab, day)
    for width, scheme, ground in ((390, "dark", "#15181b"), (1600, "light", "#ffffff")):
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 900})
        tab.wait_for_function(
            "([width, ground]) => document.documentElement.scrollWidth === width && "
            "[...Bokeh.documents[0].roots()].every("
            "root => root.background_fill_color.toLowerCase() === ground)",
            arg=[width, ground],
        )
    assert [] == told
