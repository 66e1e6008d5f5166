"""The option ``--log-decisions`` and the command ``hpcrowd explain``."""

import json
from pathlib import Path

import pandas as pd
import pytest
from hpcrowd import write_swf
from hpcrowd.agents.behaviours.decisions import MEANING, DecisionLog, Decisions, What, Why
from hpcrowd.analysis.accounts.decisions import read_decisions, write_decisions

from tests.scenarios.kinds.grids.test_grid import TWO, write_grid
from tests.support.populations import small_log

#: User 1 works, thinks 15 min and works again; user 2 is there once.
TWO_USERS = """; UnixStartTime: 1704697200
; TimeZoneString: Europe/Stockholm
; MaxProcs: 4
 1     0    0  7200 2 -1 -1 2 10800 -1 1 1 1 -1 1 -1 -1 -1
 2   900    0 10800 2 -1 -1 2 14400 -1 1 2 1 -1 1 -1 -1 -1
 3  8100    0   600 2 -1 -1 2  1200 -1 1 1 1 -1 1 -1 -1 -1
"""

RELEASED = "session 1 submitted, released by completion of session 0, think time 15.0 min"


@pytest.fixture
def results(tmp_path, call):
    """Return the folder of a run with a log."""
    trace = tmp_path / "two.swf"
    trace.write_text(TWO_USERS)
    code, _, told = call("replay", trace, "--log-decisions", "--out", tmp_path / "run")
    assert (0, True) == (code, "Results are in" in told)
    return tmp_path / "run"


def test_story_of_a_user(results, call):
    """A line for each decision, in local time and words; every column with its word."""
    code, out, err = call("explain", results, "--user", 1)
    assert (0, "", f"Mon 2024-01-08 10:15:00  {RELEASED}") == (code, err, out.splitlines()[1])
    found = json.loads(call("explain", results, "--user", 1, "--with-jobs", "--json")[1])
    assert {"run", "user", "from_s", "to_s", "decisions", "dropped"} == set(found)
    assert {
        "time": 8100, "user": 1, "what": "submitted", "why": "ended", "kind": "session",
        "unit": 1, "cause": 0, "seconds": 900, "name": "", "mood": 0.0,
        "local_time": "Mon 2024-01-08 10:15:00",
        "words": RELEASED,
        "jobs": [{"number": 3, "processors": 2, "submit": 8100, "start": 8100, "end": 8700,
                  "state": "completed", "cluster": ""}],
    } == found["decisions"][1]  # fmt: skip
    local = ("--from", "2024-01-08 08:00", "--to", "2024-01-08 10:00")
    for span in (("--from", "1h"), ("--to", "8100"), local):  # the last moment does not count
        printed = call("explain", results, "--user", 1, *span, "--json")[1]
        assert 1 == len(json.loads(printed)["decisions"])
    table = pd.read_parquet(results / "decisions.parquet")
    assert list(MEANING) == list(table.columns)
    assert ({"submitted"}, {"recorded", "ended"}) == (set(table.what), set(table.why))


OUTAGE = """
resubmit_after = "15m"
[[changes]]
do = "down"
at = "1h 30m"
until = "2h"
processors = 4
jobs = "resubmit"
"""


def test_stopped_jobs_in_words(results, call, tmp_path):
    """A stopped job says when it came again; who looks where nothing was hears when it was."""
    assert (0, """\
0 decisions of user 1, think-time, easy
its first one was on Mon 2024-01-08 08:00:00, its last one on Mon 2024-01-08 10:15:00
""", "") == call("explain", results, "--user", 1, "--from", "1d")  # fmt: skip
    (tmp_path / "outage.toml").write_text(OUTAGE)
    trace, outage = tmp_path / "two.swf", tmp_path / "outage.toml"
    call("replay", trace, "--platform", outage, "--log-decisions", "--out", results, "--force")
    _, printed, _ = call("explain", results, "--user", 2, "--with-jobs")
    assert (
        """\
Mon 2024-01-08 08:15:00  session 2 submitted at its recorded time
                           job 2: was stopped, submitted again Mon 2024-01-08 09:45:00, \
waited 15.0 min, ran 3.0 h until Mon 2024-01-08 13:00:00
Mon 2024-01-08 09:30:00  session 2: job 2 was stopped, the user submits it again after 15.0 min
2 decisions of user 2, think-time, easy, platform outage
"""
        == printed
    )


def test_many_jobs_of_a_submission(tmp_path, call):
    """Of a unit with many jobs the first ones have a line, and the others one together."""
    jobs = "".join(
        f"{number} 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" for number in range(1, 14)
    )
    (tmp_path / "bag.swf").write_text(f"; MaxProcs: 1\n{jobs}")
    call("replay", tmp_path / "bag.swf", "--log-decisions", "--out", tmp_path / "run")
    _, printed, _ = call("explain", tmp_path / "run", "--user", 1, "--with-jobs")
    lines = [line.strip() for line in printed.splitlines()]
    assert "job 10: waited 9.0 min, ran 60 s until week 1 Mon 00:10:00" == lines[10]
    assert "and 3 jobs more, the last one until week 1 Mon 00:13:00" == lines[11]


def test_read_back(tmp_path):
    """What is written is read, down to names, moods and what was dropped."""
    path, log = tmp_path / "decisions.parquet", DecisionLog(limit=2)
    log.note(5, 1, What.WENT_AWAY, Why.MOOD, mood=1.25)
    log.note(3, -1, What.SUBMITTED, Why.OWN, name="first")
    log.note(9, 2, What.SUBMITTED, Why.OWN)
    written = Decisions.of(log)
    write_decisions(written, path)
    found = read_decisions(path)
    assert (list(written), 1) == (list(found), found.dropped)


@pytest.mark.parametrize(
    "line",
    ["resample log.swf", "populate feitelson97 --model-processors 64 --days 1", "grid two.toml",
     "run grid-run.toml"],
)  # fmt: skip
def test_every_kind_of_run_is_logged(make_trace, tmp_path, monkeypatch, call, line):
    """Populations, generated users, grids and scenarios keep submissions, with their cluster."""
    monkeypatch.chdir(tmp_path)
    write_swf(small_log(make_trace), "log.swf")
    write_grid(tmp_path, TWO)
    Path("grid-run.toml").write_text('[scenario]\nkind = "grid"\nsource = "two.toml"\n')
    assert 0 == call(*line.split(), "--log-decisions", "--out", "out")[0]
    decisions = pd.read_parquet("out/decisions.parquet")
    sent = decisions[decisions.what == "submitted"]
    user = sent.user.iloc[-1] if "resample" in line else sent.user.iloc[0]
    _, printed, _ = call("explain", "out", "--user", user, "--with-jobs")
    assert "submitted" in printed
    assert (" on north until" in printed) == ("grid" in line)
