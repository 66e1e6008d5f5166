"""Words become numbers and come back; pseudonyms reveal nothing about them."""

import csv
import io

import numpy as np
from hpcrowd import Trace
from hpcrowd.environment.traces.formats.common.names import (
    NOTHING,
    names_table,
    numbered_words,
    pseudonym,
    worded,
)
from hpcrowd.environment.traces.formats.registry import FORMATS
from hpcrowd.formats import FormatOptions, Losses
from hpcrowd.traces import anonymised
from hypothesis import given
from hypothesis import strategies as st

words = st.one_of(
    st.sampled_from(["", "-1", "alice", "bob", "7", "007", "é", "a b", "Unknown", "0", "-5"]),
    st.text(max_size=5),
)


@given(st.lists(words, min_size=1) | st.lists(st.integers(-1, 10**14).map(str), min_size=1))
def test_words_come_back(given_words):
    """Each word is found under its number again, counted from 1; numbers stand for themselves."""
    numbers, names = numbered_words(given_words)
    trace = Trace.__new__(Trace)
    trace.columns, trace.names = {"user": numbers}, {"user": names}
    expected = ["" if word in NOTHING else word for word in given_words]
    assert expected == worded(trace, "user", "")
    if names:  # numbered in the order of their first jobs
        assert dict(enumerate(dict.fromkeys(filter(None, expected)), start=1)) == names
        assert set(numbers[numbers != -1].tolist()) == set(names)
    else:  # whole numbers stand for themselves
        assert [int(word or -1) for word in expected] == numbers.tolist()


def named(make_trace, users="bab"):
    """A trace whose users are called b and a, with identifiers of jobs."""
    trace = make_trace(*({"user": "ab".index(user) + 1, "group": 9} for user in users))
    trace.names = {"user": {1: "a", 2: "b"}, "queue": {1: "night"}}
    trace.extra = {"job_id": np.array(["10", "11_2", "12"], object)}
    return trace


def test_anonymised_trace(make_trace):
    """Users stay apart, by the salt; groups get pseudonyms; names and identifiers are gone."""
    trace = named(make_trace)
    hidden = anonymised(trace, "salt")
    users = hidden["user"].tolist()
    assert users[0] == users[2] != users[1]
    assert {1, 2} == set(users)
    assert sorted(hidden.names["user"].values()) == list(hidden.names["user"].values())
    assert {pseudonym("user", word, "salt") for word in "ab"} == set(hidden.names["user"].values())
    assert {pseudonym("group", "9", "salt")} == set(hidden.names["group"].values())
    assert {} == hidden.extra
    assert {1: "night"} == hidden.names["queue"]
    assert [2, 1, 2] == trace["user"].tolist()  # the trace itself is as it was
    word = worded(hidden, "user")[0]
    assert word == worded(anonymised(named(make_trace, "bbb"), "salt"), "user")[0]
    assert word != worded(anonymised(trace, "pepper"), "user")[0]
    assert 12 == len(word)
    assert pseudonym("user", "physics", "salt") != pseudonym("group", "physics", "salt")


def test_table_of_names(make_trace):
    """CSV has names by field and number, with the identifiers of jobs; commas are quoted."""
    trace = named(make_trace)
    trace.names["user"][1] = 'O"Neil, J.'
    assert [
        ["field", "number", "name"], ["user", "1", 'O"Neil, J.'], ["user", "2", "b"],
        ["queue", "1", "night"], ["job", "1", "10"], ["job", "2", "11_2"], ["job", "3", "12"],
    ] == list(csv.reader(io.StringIO(names_table(trace))))  # fmt: skip


def test_odd_line_breaks_in_names(make_trace):
    """Only a newline ends a row of sacct's JSON; other separators are part of a name."""
    trace = make_trace({"submit": 1e9, "run": 5, "allocated_processors": 1, "user": 1})
    trace.names["user"] = {1: "a\x1cb\u2028c"}
    kind = FORMATS["sacct-json"]
    data = kind.generate(trace, Losses(), FormatOptions())
    assert trace.names["user"] == kind.parse(data, "x", FormatOptions()).names["user"]
