"""The server of the page as a page uses it: runs, seconds, changes and forecasts."""

import time
from pathlib import Path

import pytest
from hpcrowd.environment.clock import DAY, HOUR

from tests.support.page import BUSY, processes_of

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")
pytest.importorskip("websockets", reason="no websockets: pip install 'hpcrowd[page]'")

from tests.support.page_client import connected


@pytest.fixture
def client(served):
    """A page that has just opened the run."""
    with connected(served.address) as found:
        yield found


def test_opens_at_the_first_busy_hour(client):
    """The run is introduced, its timeline comes to the end, and the page opens where it is busy."""
    at = client.ask("open")["at"]
    run = client.until("run", run=0)
    assert ("log.swf", False) == (run["title"], run["played_back"])
    assert "Europe/Stockholm" == run["clock"]["zone"]
    assert at == client.until("timeline", done=True)["busy"]
    before, there = (client.show(second, "queue")["runs"][0]["queue"] for second in (at - HOUR, at))
    assert there["total"] > 0
    assert all(row["reason"] for row in there["rows"])
    assert before["total"] == 0 or at == HOUR


def test_any_second_can_be_shown(client):
    """Forward, back, from the end, from the beginning: a second looks the same each time."""
    client.ask("open", at=0)
    panels = ("numbers", "load", "submissions", "gantt", "queue", "users", "user")
    shown = {"from": BUSY - 7 * DAY, "to": BUSY, "user": 3}
    first = client.show(BUSY, *panels, **shown)
    assert BUSY == first["at"]
    assert client.show(10**10, *panels)["over"]
    assert first["runs"] == client.show(BUSY, *panels, **shown)["runs"]
    client.show(0, *panels)
    for at in range(BUSY - 3 * HOUR, BUSY + 1, HOUR):
        steps = client.show(at, *panels, **shown)
    assert first["runs"] == steps["runs"]


def test_two_runs_with_other_settings(client):
    """A second run has its own settings and comes along; a mistake in them keeps what is there."""
    client.ask("open", at=BUSY, runs=[{}, {"settings": {"processors": "2x"}}])
    found = client.show(BUSY, "numbers", "gantt")
    assert [8, 16] == [one["gantt"]["size"] for one in found["runs"]]
    answer = client.ask("open", at=BUSY, runs=[{}, {"settings": {"processors": "two"}}])
    assert 2 == answer["runs"]
    assert "processors 'two': neither a whole number" in client.until("failed", run=1)["error"]
    assert 16 == client.show(BUSY, "gantt")["runs"][1]["gantt"]["size"]
    client.ask("open", at=BUSY, runs=[{}])
    assert 1 == len(client.show(BUSY, "numbers")["runs"])


def test_the_next_event_of_a_user(client):
    """It stops where something happens to the user, and says when nothing more does."""
    client.ask("open", at=0)
    client.show(0)
    found = client.show(None, "user", event=1, user=1)
    assert 1 == found["runs"][0]["user"]["jobs_total"]
    client.show(10**10)
    assert "Nothing more happens to user 1." == client.show(None, event=1)["message"]


def test_seeds_give_intervals(client):
    """Both runs are repeated, seed by seed, and their difference has an interval."""
    client.ask("open", at=0, runs=[{}, {"settings": {"processors": "2x"}}])
    client.ask("seeds", count=2)
    difference = client.until("seeds", done=4)["difference"]["wait_mean_s"]
    assert (2, True) == (difference["n"], difference["mean"] < 0)


def test_going_on_from_here_with_a_changed_user(client):
    """Run B is A until a user is changed; an edge that makes the user think longer delays it."""
    client.ask("open", at=BUSY)
    client.show(BUSY)
    graph = client.show(BUSY, "user", user=3)["runs"][0]["user"]["graph"]
    edges = zip(graph["before"], graph["after"], graph["think"], strict=True)
    before, after, think = next(edge for edge in edges if graph["state"][edge[1]] in (3, 4))
    edge = {"before": graph["unit"][before], "after": graph["unit"][after]}
    longer = {"user": 3, "kind": "think_time", **edge, "seconds": think + 2 * DAY}
    changed = {"since": BUSY, "edits": [longer]}
    assert 2 == client.ask("open", at=BUSY, runs=[{}, changed])["runs"]
    assert [longer] == client.until("run", run=1)["edits"]
    one, two = client.show(BUSY - DAY, "gantt", "queue")["runs"]
    assert one == two
    one, two = client.show(BUSY + 7 * DAY, "user", user=3)["runs"]
    assert one["user"]["jobs_total"] > two["user"]["jobs_total"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"user": 3, "kind": "behaviour", "value": "own.py:X"}, "not known"),
        ({"user": 3, "kind": "remove_edge", "before": 1, "after": 2}, "there is none"),
        ({"user": 3, "kind": "add_edge", "before": 1, "after": 2}, "give seconds"),
    ],
)
def test_changes_that_are_not_possible(client, change, told):
    """The run stays as it is, and one line says why."""
    client.ask("open", at=BUSY)
    answer = client.ask("open", at=BUSY, runs=[{}, {"since": BUSY, "edits": [change]}])
    assert 1 == answer["runs"]
    assert told in client.until("failed", run=1)["error"]


def test_pages_are_apart(served):
    """What one page does leaves another where it is."""
    with connected(served.address) as one, connected(served.address) as two:
        for client in (one, two):
            client.ask("open", at=0)
        one.show(5 * DAY)
        two.show(2 * DAY)
        assert [5 * DAY, 2 * DAY] == [client.show()["at"] for client in (one, two)]


def test_messages_that_make_no_sense(client):
    """They are answered with one line, and change nothing."""
    client.ask("open", at=HOUR)
    client.show(HOUR)
    assert "extra inputs" in client.ask("show", path="/etc/passwd")["error"]
    assert HOUR == client.show()["at"]
    assert "did you mean load" in client.ask("save", run=0, panel="loda", kind="csv")["error"]
    assert "the page shows 1" in client.ask("save", run=1, panel="load", kind="csv")["error"]


def outcome(client, asked, run=0):
    """Return the last news of a forecast: what was found, or what went wrong."""
    while True:
        news = client.until("forecast", asked=asked, run=run)
        if "error" in news or ("found" in news and news.get("done", -1) == news.get("of")):
            return news
        client.pushed.remove(news)


def test_a_forecast_comes_with_progress(client):
    """It is the same each time; meanwhile the page shows other things of the same second."""
    client.ask("open", at=BUSY)
    panel = client.show(BUSY, "forecast")["runs"][0]["forecast"]
    assert ("", "think-time") == (panel["why"], panel["users"])
    number = client.send("forecast", futures=20)
    assert client.answer(number)["ok"]
    assert client.show(BUSY, "queue")["runs"][0]["queue"]["rows"]
    found = outcome(client, number)["found"]
    assert (BUSY, 20) == (found["at"], found["futures"])
    assert found == outcome(client, client.send("forecast", futures=20))["found"]


def test_both_runs_have_forecasts(client):
    """Each run is forecast from its own state; what is wrong in one is a line of its own."""
    client.ask("open", at=BUSY, runs=[{}, {"settings": {"processors": "2x"}}])
    client.show(BUSY, "forecast")
    job = {"processors": 9, "requested": HOUR}
    number = client.send("forecast", futures=20, days=1, jobs=[job])
    assert 16 == outcome(client, number, run=1)["found"]["size"]
    words = "a job of 9 processors: the machine has 8; ask for that many at most"
    assert words == outcome(client, number)["error"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of Linux")
@pytest.mark.parametrize(
    "do",
    [
        lambda client: client.show(BUSY - HOUR),
        lambda client: client.ask("forecast", futures=0),
        lambda client: client.ask("open", at=BUSY, runs=[{"settings": {"scheduler": "fcfs"}}]),
        lambda client: client.connection.close(),
    ],
    ids=["another second", "no futures", "another run", "closed"],
)
def test_a_forecast_ends_with_its_second_and_with_the_page(served, do):
    """Its processes end, and nothing more is pushed."""
    with connected(served.address) as client:
        client.ask("open", at=BUSY)
        client.show(BUSY)
        before = set(processes_of(served))
        number = client.send("forecast", futures=200, days=7)
        client.until("forecast", asked=number)
        more = set(processes_of(served)) - before
        assert 1 == len(more)
        do(client)
        limit = time.perf_counter() + 10
        while more & set(processes_of(served)) and time.perf_counter() < limit:
            time.sleep(0.05)
        assert not more & set(processes_of(served))
        if client.connection.close_code is None:
            client.show()
            last = [one for one in client.pushed if one.get("asked") == number]
            assert all(one["done"] < one["of"] for one in last if "done" in one)
