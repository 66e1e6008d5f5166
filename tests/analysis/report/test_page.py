"""The report on runs as a page: whole, readable, and about the runs that it was given."""

import re
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from hpcrowd.analysis.accounts.decisions import LoggedDecisions
from hpcrowd.analysis.accounts.grid import Sites
from hpcrowd.analysis.accounts.reactions import Reactions
from hpcrowd.analysis.html import DARK, GENERATOR, LIGHT, figure_of, html_page, list_of, rows_table
from hpcrowd.analysis.metrics import METRICS
from hpcrowd.analysis.parts import RunParts
from hpcrowd.analysis.report.figures import figures_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.pictures import report_html
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import Page

#: What is special with each run.
KINDS = ("plain", "platform", "visits", "record", "unrecorded", "one job", "no clock")
KINDS += ("repaired", "empty")


@pytest.fixture(scope="module")
def pages(runs):
    """The report on each of them, made when it is first looked at."""
    return cache(lambda kind: report_html([runs[kind]], again=["hpcrowd again"]))


@pytest.mark.parametrize("kind", KINDS)
def test_page_is_whole(pages, runs, kind):
    """A page has a language, a title, one heading, contents whose links lead somewhere."""
    text, page = pages(kind), Page(pages(kind))
    assert text.startswith("<!DOCTYPE html>")
    assert "en" == page.all("html")[0]["lang"]
    assert [1, 1, 1] == [len(page.all(tag)) for tag in ("title", "h1", "nav")]
    targets = [link["href"].removeprefix("#") for link in page.all("a")]
    assert targets == [section["id"] for section in page.all("section")]
    assert len(targets) == len(set(targets)) == len(page.all("h2"))
    assert [] == re.findall(r"<script|https?://|<link|@import|url\(|javascript:", text)
    assert [] == [a for _, a in page.seen if set(a) & {"onload", "onclick", "onerror"}]
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" == policy
    expected = [one.title for _, one in figures_of(runs[kind])]
    images, figures = page.all("img"), page.pictures()
    assert len(expected) == len(images) == len(page.all("figure")) == text.count('"card"><img')
    assert [] == [t for t in expected if not any(i["alt"].startswith(t) for i in images)]
    assert [] == [image["alt"] for image in images if len(image["alt"]) < 60]
    assert [] == [f.shape for f in figures if f.shape[1] != 2400 or f.std() < 5]
    assert [] == [one.name for one in METRICS if "_" in one.name and one.name in page.text]


def luminance(colour):
    """Return the relative luminance of a colour such as ``#15181b`` (WCAG 2.1)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_can_be_read(colours):
    """Text has a contrast of at least 4.5 to 1 on light and on dark screens."""
    for text, ground in product(("ink", "quiet", "link"), ("ground", "head")):
        both = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (both[1] + 0.05) / (both[0] + 0.05) >= 4.5, (text, ground)


def test_plain_report_tells_the_run(pages):
    """The head says in words what was run and what came out; the end, how to run it again."""
    text = Page(pages("plain")).text
    for words in (
        "Think-time, easy: 90 jobs of made by 3 users, simulated, on 4 processors, from 2000-03-2",
        "(local time, Europe/Stockholm)", "A job waited", "of the processor time was in use",
        "On average a job was submitted", "Share of processor-seconds in use", "Utilization",
        "Mean response time", "Users with the most work", "nothing was dropped or repaired",
        "seed 0", "scheduler easy", "f" * 64, "numpy", "Again: hpcrowd again", "second 0 is",
        "Decisions of users", "--figures FOLDER",
    ):  # fmt: skip
        assert words in text, words
    dark = "@media screen and (prefers-color-scheme: dark) { :root { --ground: #15181b;"
    assert dark in pages("plain")


def test_other_kinds_of_runs(pages):
    """What a run has beyond the plain one is reported, and what it has not is left out."""
    texts = {kind: Page(pages(kind)).text for kind in KINDS}
    for kind, words in (
        ("platform", "Numbered boxes"),
        ("platform", "2000-03-24 12:00:00"),
        ("visits", "Users who come and go"),
        ("record", "Recorded: 90 jobs of log.swf by 3 users, as recorded,"),
        ("unrecorded", "Right: jobs submitted per day"),
        ("no clock", "Start not in the trace: its origin counts as Monday 00:00."),
        ("empty", "No job ran, as nothing was submitted."),
        ("one job", "1 job of made by 1 user"),
        ("repaired", "read: 1 job dropped: no processors; 88 jobs repaired: no wait"),
    ):
        assert words in texts[kind] + pages(kind), words
        assert words not in texts["plain"] or words.startswith("Right"), words
    changes = ("home: maintenance", "home: 4 to 6 processors", "home: scheduler fcfs")
    places = [texts["platform"].index(words) for words in changes]
    assert sorted(places) == places  # in the order of time
    for kind in ("record", "unrecorded"):
        assert "later than recorded" not in texts[kind]
        assert "mean lateness" not in texts[kind]
    assert "Key numbers" not in texts["empty"]


def test_reactions_sites_and_full_logs_are_reported(runs):
    """Accounts that a stored run holds have their own sections; a full log says so."""
    run, decisions = replace(runs["plain"]), runs["plain"].parts["decisions"].rows
    reactions = {"jobs": 3, "by_reaction": {"wait for noon": {"jobs": 3, "users": 1}}}
    none = dict.fromkeys(("wait_local_s", "wait_by_grid_s", "held_s", "bounded_slowdown"))
    site = {"processors": 4, "jobs": 90, "jobs_by_grid": 5, "wait_s": 7200.0, "utilization": 0.5}
    logged = LoggedDecisions(rows=replace(decisions, dropped=7))
    run.parts = RunParts(Reactions(reactions), Sites({"north": site | none}), logged)
    run.configuration = {"model": "x" * 9000}
    text = Page(report_html([run])).text
    assert "(9,000 characters, in full in provenance.json)" in text
    for words in ("wait for noon: 3 jobs of 1 user", "Sites of the grid", "north", "50.0 %",
                  "7 later decisions not kept"):  # fmt: skip
        assert words in text, words


def test_many_runs_or_nothing(runs, monkeypatch, make_trace):
    """Of many runs the first have their own parts, and the page says that others have not."""
    monkeypatch.setattr("hpcrowd.analysis.report.runs.MOST_PARTS", 1)
    page = Page(report_html([runs["one job"]] * 4))
    assert "the numbers of 3 more runs are here" in page.text
    assert "(3) and 1 more" in page.text
    with pytest.raises(QuantityError, match="nothing to report on"):
        report_html([])
    # Where no job ran the page says what happened instead, and has no empty pictures.
    jobs = [{"submit": n, "run": 9, "requested_processors": 8, "user": n} for n in range(3)]
    run = replay(make_trace(*jobs, header="; MaxProcs: 8"), processors=4)
    page = Page(report_html([run]))
    assert "No job ran: 3 jobs rejected." in page.text
    assert ["use", "submissions", "week"] == [name for name, _ in figures_of(run)]
    assert 3 == len(page.all("img"))


def test_parts_of_pages():
    """Text is escaped everywhere; tables say which cells name rows and columns."""
    page = html_page("<Demo> & more", ["a < b"], [figure_of(b"\x89PNG", 'says "so"', "T")])
    for words in (GENERATOR, "&lt;Demo&gt; &amp; more", "a &lt; b",
                  'alt="T. says &quot;so&quot;"'):  # fmt: skip
        assert words in page
    table = rows_table(["", "n", "why"], [["<x>", "1", "&"]], remark=True, caption="<all>")
    cells = '<td class="number">1</td><td class="meaning">&amp;</td>'
    assert f'<th scope="row" class="name">&lt;x&gt;</th>{cells}' in table
    assert 'aria-label="&lt;all&gt;"' in table
    assert 'class="title">a a' in rows_table(["a"], [["a " * 40]])  # wrapped, to leave room
    assert "<ul><li>&lt;1</li></ul>" == list_of(["<1"])
