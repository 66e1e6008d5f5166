"""The report on workloads: one file that loads nothing; its pictures, of whatever there is."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from hpcrowd.analysis.features import draw
from hpcrowd.analysis.features.feature import measure
from hpcrowd.analysis.features.panels import drawable, exceeding, name_of
from hpcrowd.analysis.features.report import PICTURES, features_html
from hpcrowd.analysis.features.stats import FEATURES, GROUPS
from hpcrowd.analysis.features.workload import Settings, Workload
from hpcrowd.analysis.pictures.plots import figure_png
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.errors import UnavailableError
from matplotlib.figure import Figure

from tests.support.reports import Page, texts

NEARLY_NOTHING = Workload.of([0, 70, DAY], [60, 60, 61], name='a & <b> "c"')


@pytest.fixture(scope="module")
def report():
    """The report on a workload of which nearly everything is known, and on one of nothing."""
    known = replace(usual("known.swf.gz"), machine=64, notes=("a note < that is > told",))
    known.left_out["no run time"] = 1234
    measured = [measure(workload, FEATURES.values()) for workload in (known, NEARLY_NOTHING)]
    return features_html(measured, again="hpcrowd stats a <b>")


def test_report_is_one_whole_file(report):
    """Pictures are part of the file; there are no scripts and no references to elsewhere."""
    page = Page(report)
    assert set() == {tag for tag, _ in page.seen} & {"script", "link", "iframe", "object"}
    assert len(PICTURES) == len(page.pictures())
    links = [given["href"] for _, given in page.seen if "href" in given]
    places = {given["id"] for _, given in page.seen if "id" in given}
    assert [] == [link for link in links if link.removeprefix("#") not in places]
    assert re.search("https?://|//cdn|url\\(", re.sub('src="[^"]*"', "", report)) is None
    # Title, name, definition and source of each feature, and how to read each picture.
    text = unescape(report)
    wanted = [words for one in FEATURES.values() for words in (
        one.title.strip(), one.name, one.definition, one.source)]  # fmt: skip
    wanted += [group.title for group in GROUPS] + [one.caption for one in PICTURES.values()]
    assert [] == [words for words in wanted if not words or words not in text]
    assert {group.name for group in GROUPS} == {picture.group for picture in PICTURES.values()}
    # What is not available says why; jobs left out, notes and names are there, as text.
    text = unescape(report)
    for words in (
        "not available: no waits recorded", "left out: no run time</th><td>1,234</td><td>0</td>",
        "a note < that is > told", "its origin counts as Monday 00:00",
        "Arrivals counted per 15.0 min", "numpy", "scipy",
        "Again: <code>hpcrowd stats a <b></code>",
    ):  # fmt: skip
        assert words in text
    assert "nan" not in re.sub("<[^>]*>", " ", text).lower().split()
    assert "<b>" not in report


def test_reports_of_hardly_anything():
    """The same workload makes the same bytes; scales that differ, and no jobs, are reported."""
    first, second = (features_html([measure(NEARLY_NOTHING, [])]) for _ in range(2))
    assert first == second
    other = Workload.of([0, 9], [1, 1], name="hourly", settings=Settings(time_scale_s=7200))
    text = features_html([measure(one, []) for one in (NEARLY_NOTHING, other)])
    assert "hourly: Arrivals counted per 2.0 h" in text
    text = features_html([measure(Workload.of([], [], name="empty"), FEATURES.values())])
    assert re.search("empty: 0 jobs.*not available: ", text, re.S)


def usual(name="usual"):
    """Four weeks of jobs of all kinds, drawn at random."""
    random, jobs = np.random.default_rng(5), 3000
    submit = np.sort(random.integers(0, 4 * WEEK, jobs))
    run_time, processors = random.lognormal(5, 2, jobs).round(), 2 ** random.integers(0, 6, jobs)
    asked, wait = random.integers(60, 10 * HOUR, jobs), random.integers(0, HOUR, jobs)
    more = {"requested_time": asked, "wait": wait, "user": random.zipf(1.8, jobs) % 40}
    return Workload.of(submit, run_time, processors, name=name, **more)


#: Workloads of which little or nothing can be drawn.
DEGENERATE: dict[str, Workload] = {
    "no jobs": Workload.of([], []),
    "three jobs": Workload.of([0, 5, 70], [1, 20, 300], [1, 2, 4], user=[1, 1, 2], wait=1),
    "the same second": Workload.of(np.full(9, 70.0), np.full(9, 5.0), user=3, wait=0),
    "equal jobs": Workload.of(np.arange(400) * 3600.0, np.full(400, 60.0), 8, user=1, wait=60),
    "longer than a century": Workload.of([0, 5e9, 9e9], [1, 1, 2], user=1),
    "before the origin": Workload.of([-2 * DAY, -5.5, 30 * DAY], [1, 1, 2], user=1),
    "huge": Workload.of([0, 1e5, 9e5], [1e10, 1e12, 1e14], [1, 2**30, 2**40], wait=1e13),
    "dollars": Workload.of([0, 50], [1, 1], name="$a_b$ <c> & " + 60 * "long "),
}


@pytest.mark.slow
@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("case", DEGENERATE)
def test_every_picture_can_be_drawn_of_any_workload(picture, case):
    """However little there is, the result is a picture, alone and next to other workloads."""
    draw = PICTURES[picture].draw
    assert figure_png(draw([DEGENERATE[case]])).startswith(b"\x89PNG")
    assert isinstance(draw([usual(), DEGENERATE[case]]), Figure)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_name_every_workload(picture, count):
    """Each of up to seven workloads can be distinguished in every picture."""
    names = [f"trace {place}" for place in range(count)]
    one = usual()
    words = texts(PICTURES[picture].draw([replace(one, name=name) for name in names]))
    assert [] == [name for name in names if name not in words]


def test_what_is_missing_is_said_in_the_panel():
    """A panel without data says why; workloads that are left out are listed by reason."""
    bare = Workload.of(np.arange(100) * HOUR, np.arange(100), name="bare")
    for picture, workloads, words in (
        ("jobs", [bare], "no waits recorded"), ("arrivals", [bare], "shorter than a week"),
        ("jobs", [usual(), bare], "not drawn: bare (no waits recorded)"),
    ):  # fmt: skip
        assert words in texts(PICTURES[picture].draw(workloads))

    def find(workload):
        raise UnavailableError("none" if workload.name != "d" else "other")

    several = [replace(bare, name=name) for name in "abcdefg"]
    for some, words in (
        (several[:2], "^none$"), (several, r"^not drawn: a, b, 4 others \(none\); d \(other\)$")
    ):  # fmt: skip
        with pytest.raises(UnavailableError, match=words):
            drawable(some, find)


def test_what_is_drawn_is_exact():
    """Jobs are counted by local day, those of an hour of the week in mean hours."""
    edges, jobs = draw.jobs_per_day(Workload.of([HOUR, 2 * HOUR, 3 * DAY], [1, 1, 1]))
    assert ([2, 0, 0, 1], [DAY * n for n in range(5)]) == (jobs.tolist(), edges.tolist())
    every_hour = np.arange(2 * WEEK // HOUR) * HOUR
    submit = np.concatenate([every_hour, [8 * HOUR, 8 * HOUR + WEEK]])
    shares = draw.week_shares(Workload.of(submit, 1))
    assert ((7, 24), 1) == (shares.shape, pytest.approx(shares.mean()))
    assert 2 == pytest.approx(shares[0, 8] / shares[0, 9])
    # Users who think as long as their batch took have their medians on the diagonal.
    response = np.tile([10.0, 100.0, 1000.0], 40)
    submit = np.concatenate([[0], np.cumsum(2 * response)[:-1]])
    middle, *quartiles = draw.think_quartiles(Workload.of(submit, response, user=1, wait=0))
    assert 3 == len(middle)
    assert [[10, 100, 1000]] * 3 == [one.tolist() for one in quartiles]
    # A CCDF is drawn from 1 s to the largest value; names are short and plain.
    x, share = exceeding(np.array([0, 2, 3, 500]))
    assert (1, 500, 0.75, 0) == (x[0], x[-1], share[0], share[-1])
    names = [name_of(replace(usual(), name=name)) for name in ("KTH.swf.gz", "a$b$", "long" * 20)]
    assert ["KTH", r"a\$b\$"] == names[:2]
    assert 34 >= len(names[2])


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_hold_everything_once(weighted):
    """The shares of all cells add up to 1, and are where the jobs are."""
    workload = Workload.of([0, 1, 2, 3], [0, 1, 1000, 1001], [1, 2, 3, 1024])
    cells = draw.cells_of(workload, draw.grid_of([workload]), weighted=weighted)
    assert 1 == pytest.approx(cells.sum())
    workload = Workload.of([0, 1], [5, 100], [1, 4])
    grid = draw.grid_of([workload])
    rows, columns = np.nonzero(draw.cells_of(workload, grid, weighted=weighted))
    middle = np.sqrt(grid.processors[rows] * grid.processors[rows + 1])
    assert [1, 4] == middle.round().tolist()
    assert (grid.run_time[columns] <= [5, 100]).all()
    assert (grid.run_time[columns + 1] > [5, 100]).all()
