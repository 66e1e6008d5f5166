"""``what_if`` and ``hpcrowd what-if``: the record, the base case, a change, and who gains."""

import json

import pytest
from hpcrowd import HpcrowdError, read_run, read_swf, what_if
from hpcrowd.scenarios.whatif.change import GROUPS, NOTICED

from tests.scenarios.sweeps.sweep_cases import write_busy

#: Your own behaviour: users who submit as recorded.
MINE = """
from hpcrowd.behaviours import Rigid

def patient(work):
    return Rigid()
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return the path of a busy log."""
    return write_busy(tmp_path_factory.mktemp("what-if"), jobs=600)


@pytest.fixture(scope="module")
def busy(log):
    """Return that log."""
    return read_swf(log)


@pytest.fixture(scope="module")
def larger(busy):
    """Return what half as many processors more do."""
    return what_if(busy, {"processors": "+50%"}, scheduler="fcfs")


def test_both_kinds_of_users_before_and_after(larger):
    """Waits fall; rigid users are never late; settings in common hold in all runs."""
    assert ["rigid", "think-time"] == list(larger.before) == list(larger.after)
    runs = [run for users in larger.before for run in (larger.before[users], larger.after[users])]
    assert [8, 12, 8, 12] == [run.processors for run in runs]
    assert {"fcfs"} == {run.configuration["scheduler"] for run in runs}
    recorded, *waits = dict(larger.rows())["wait_mean_s"]
    assert larger.recorded["wait_mean_s"] == recorded
    assert waits[1] < waits[0]
    assert waits[3] < waits[2]
    assert [0, 0] == dict(larger.rows())["lateness_mean_s"][1:3]
    assert waits == larger.to_frame().loc["wait_mean_s"].tolist()[1:]


def test_who_waits_less(larger):
    """Shares are those of users whose own mean wait falls or rises by more than a minute."""
    frame, shares = larger.users("rigid"), larger.shares("rigid")
    assert [*GROUPS, "all"] == list(shares)
    assert len(frame) == shares["all"].users == sum(shares[name].users for name in GROUPS)
    assert (frame["change"] < -NOTICED).mean() == shares["all"].less > 0
    assert (frame["change"] > NOTICED).mean() == shares["all"].longer
    before, after = (runs["rigid"].users()["wait_mean_s"] for runs in (larger.before, larger.after))
    assert (after - before).sort_values(ascending=False).round(6).tolist() == frame["change"].round(
        6
    ).tolist()
    heavy = frame[frame["group"] == "heavy"]
    assert heavy["before"].mean() == pytest.approx(shares["heavy"].before)


def test_it_shows_itself(larger):
    """In a terminal and in a notebook: what changed, the record, all runs, and the sentence."""
    for text in (repr(larger), larger._repr_html_()):
        assert "processors +50%: 12 instead of 8 processors" in text
        for word in ("recorded", "rigid", "think-time", "mean wait", "heavy", larger.sentence):
            assert word in text
    assert len(larger._repr_html_()) < 20_000
    assert larger.sentence.startswith("With processors +50%, jobs wait on average ")


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ("2x", {}, "change '2x': not a setting with its value; write for example processors=+20%"),
        ((), {}, "change: nothing changes; write for example"),
        (7, {}, "change 7: not a setting"),
        ({"procesors": 4}, {}, "change 'procesors': not known; did you mean processors?"),
        ({"zone": "UTC"}, {}, "change 'zone': not known"),
        ({"processors": "1x"}, {}, "change processors 1x: is what the base case has"),
        ({"users": "fluid"}, {}, "change: only users, who are asked about it"),
        ("processors=8x8", {}, "processors '8x8': neither a whole number"),
        ({"processors": "2x"}, {"users": "nobody"}, "users 'nobody': not known"),
    ],
)
def test_mistakes_are_one_line(busy, change, settings, words):
    """What cannot be asked is refused with its cure."""
    with pytest.raises(HpcrowdError) as error:
        what_if(busy, change, **settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_users_are_those_who_react(busy):
    """By name, as a change or as a setting; rigid ones alone are not compared with themselves."""
    found = what_if(busy, ["scheduler=sjf", "users=adjusted"])
    assert ["rigid", "adjusted"] == list(found.before)
    assert ["rigid"] == list(what_if(busy, "speed=2x", users="rigid").before)


def test_jobs_that_cannot_run_any_more_are_in_the_sentence(busy):
    """Waits alone would praise a machine that is too small."""
    found = what_if(busy, "processors=20%")
    lost = found.after["think-time"].metrics["jobs_rejected"]
    assert f"; {lost:,} jobs cannot run any more." in found.sentence
    assert lost > 0


def test_command_is_the_same(log, larger, tmp_path, monkeypatch, call):
    """It prints the same; ``--out`` has all runs; users may be your own."""
    monkeypatch.chdir(tmp_path)
    words = ["what-if", str(log), "processors=+50%", "--scheduler", "fcfs"]
    out = call(*words)[1]
    assert larger.sentence in out
    answer = json.loads(call(*words, "--json", "--out", "answer")[1])
    assert larger.to_json()["users"] == answer["users"]
    assert answer == json.loads((tmp_path / "answer/what-if.json").read_text())
    run = read_run(tmp_path / "answer/users-after")
    assert run.metrics == larger.after["think-time"].metrics
    (tmp_path / "mine.py").write_text(MINE)
    own = call("what-if", str(log), "processors=2x", "users=mine.py:patient")[1]
    assert "patient" in own
