"""Messages from the browser, and intervals over seeds."""

import json
import re
from contextlib import suppress

import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.inspector.service.background import intervals
from hpcrowd.scenarios.inspector.service.protocol import parse_request
from hypothesis import given
from hypothesis import strategies as st

ASKED = st.fixed_dictionaries(
    {
        "id": st.integers(0, 9) | st.text(max_size=3),
        "do": st.sampled_from(["open", "show", "halt", "seeds", "forecast", "save", "run"]),
    },
    optional={
        "at": st.none() | st.integers(-5, 10**13) | st.floats(),
        "runs": st.lists(
            st.fixed_dictionaries({"settings": st.dictionaries(st.text(), st.text())})
        ),
        "panels": st.lists(st.sampled_from(["load", "secrets"])),
        "count": st.integers(-1, 200),
        "futures": st.sampled_from([0, 20, 30]),
        "path": st.just("/etc/passwd"),
    },
)


@given(ASKED.map(json.dumps) | st.text(max_size=60))
def test_any_message_is_a_request_or_refused(text):
    """What comes from a browser is read, or refused."""
    with suppress(QuantityError):
        do = parse_request(text).do
        assert do in ("open", "show", "halt", "seeds", "forecast", "save")


#: A job that may be asked about.
JOB = {"processors": 1, "requested": 60}


@pytest.mark.parametrize(
    ("do", "message", "words"),
    [
        ("read", {"path": "/etc/passwd"}, "input tag 'read'"),
        ("show", {"path": "/etc/passwd"}, "show.path: extra inputs"),
        ("show", {"at": 1.5}, "show.at: input should be a valid integer"),
        ("show", {"at": -1}, "show.at: input should be greater than"),
        ("show", {"at": 10**13}, "show.at: input should be less than"),
        ("show", {"panels": ["x" * 100_000]}, "at most 100,000"),
        ("open", {"runs": [{}, {}, {}]}, "open.runs: list should have at most 2"),
        ("open", {"runs": [{"settings": {"seed": 3}}]}, "valid string, not 3"),
        ("open", {"runs": [{"edits": [{"user": 1, "kind": "code"}]}]}, "edits.0: input tag 'code'"),
        ("save", {"run": 0, "panel": "load", "kind": "py"}, "save.kind"),
        ("forecast", {"futures": 51}, "forecast.futures"),
        ("forecast", {"futures": 50, "days": 365}, "forecast.days"),
        ("forecast", {"futures": 50, "jobs": [JOB | {"processors": 0}]}, "greater than"),
        ("forecast", {"futures": 50, "jobs": [JOB | {"processors": 10**9}]}, "less than"),
        ("forecast", {"futures": 50, "jobs": [JOB | {"processors": "$(id)"}]}, "valid integer"),
        ("forecast", {"futures": 50, "jobs": [JOB | {"count": 1001}]}, "count"),
        ("forecast", {"futures": 50, "jobs": [JOB] * 3}, "at most 2"),
        ("forecast", {"futures": 50, "scheduler": "own.py:Own"}, "extra inputs"),
    ],
)
def test_messages_that_make_no_sense(do, message, words):
    """What is wrong is reported with its place and the rule; numbers have limits."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        parse_request(json.dumps({"id": 1, "do": do, **message}))


def test_intervals_are_paired_by_seed():
    """Two runs that differ by 2 with every seed differ by 2 exactly, however much seeds do."""
    found = intervals([[{"wait": 1.0}, {"wait": 11.0}], [{"wait": 3.0}, {"wait": 13.0}]])
    assert {"mean": 2.0, "half": 0.0, "n": 2} == found["difference"]["wait"]
    assert 6.0 == found["runs"][0]["wait"]["mean"]
    # Student's t with one degree of freedom: 12.706 standard errors of 5.
    assert 63.53 == pytest.approx(found["runs"][0]["wait"]["half"], abs=0.01)
