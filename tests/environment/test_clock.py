"""Headers and local time: what a header says, and what time it is at a second of the run."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment import Clock, Header
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hypothesis import given
from hypothesis import strategies as st


def header(text):
    """A header of these lines."""
    return Header([line.encode() for line in text.splitlines()])


ENTRIES = [
    ("; Version: 2.2\n;Computer: SP2 \n; Note: a\n; Note: b",
     [("Version", "2.2"), ("Computer", "SP2"), ("Note", "a"), ("Note", "b")]),
    # Indented lines without a key go on with the value before; other comments are nobody's.
    ("; a line of text\n; Note: one\n;       two\n;\n; Queues: none\n;;; x",
     [("Note", "one\ntwo"), ("Queues", "none")]),
    # A web address is not a key.
    ("; Information: see\n;     http://example.org/a",
     [("Information", "see\nhttp://example.org/a")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "entries"), ENTRIES)
def test_entries_of_a_header(text, entries):
    """Entries are key and value in order; the same key may come twice."""
    assert entries == header(text).entries()


def test_keys_are_found_in_upper_and_lower_case():
    """The first value of a key is found whatever its case; a missing key is None."""
    some = header("; MaxProcs: 100 (SP2)\n; maxprocs: 3")
    assert "100 (SP2)" == some.get("maxPROCS")
    assert 100 == some.integer("MaxProcs")
    assert None is some.get("MaxNodes")
    assert None is some.integer("MaxNodes")
    assert None is header("; MaxProcs: unknown").integer("MaxProcs")
    texts = ("; MaxProcs: 100\n; MaxNodes: 7", "; MaxProcs: -1\n; MaxNodes: 7", "; MaxNodes: 7", "")
    assert [100, 7, 7, None] == [header(text).processors for text in texts]


START, STOCKHOLM = "; UnixStartTime: 843471747", "\n; TimeZoneString: Europe/Stockholm"
#: A header, whether the clock is known and nominal, what it says, and the time at its origin.
CLOCKS = [
    (START + STOCKHOLM, True, False, "", "1996-09-23T11:42:27+02:00"),
    # A start without a zone is taken in universal time.
    *((START + zone, False, False, "UTC", "1996-09-23T09:42:27+00:00") for zone in (
        "", "\n; TimeZoneString: Nowhere/Land", "\n; TimeZoneString: ../../etc/passwd")),
    # Without a start the origin is a Monday, 00:00.
    *((start, False, True, "Monday 00:00", "T00:00:00+00:00") for start in (
        "", f"; UnixStartTime: 0{STOCKHOLM}", f"; UnixStartTime: -1{STOCKHOLM}")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "known", "nominal", "note", "origin"), CLOCKS)
def test_clock_of_a_header(text, known, nominal, note, origin):
    """The origin is UnixStartTime in the zone of TimeZoneString; the clock says what is missing."""
    clock = Clock.of(header(text))
    assert (known, nominal) == (clock.known, clock.nominal)
    assert note in clock.note
    assert clock.local(0).isoformat().endswith(origin)
    assert 10 == (clock.local(10) - clock.local(0)).total_seconds()
    assert not nominal or 0 == clock.second_of_week(np.array(0))


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        # Clocks in Stockholm go forward at 02:00 on 30 March and back at 03:00 on 26 October 1997.
        (datetime(1997, 3, 30, 1, tzinfo=UTC), 2 * HOUR - 1, 3 * HOUR),
        (datetime(1997, 10, 26, 1, tzinfo=UTC), 3 * HOUR - 1, 2 * HOUR),
    ],
)
@pytest.mark.parametrize("offset", [0, 1, 1000, 3599])
def test_summer_time(change, before, after, offset):
    """Local time jumps at the very second, wherever in an hour the origin of the run lies."""
    start = int(change.timestamp()) - 5 * HOUR - offset
    clock = Clock(start, ZoneInfo("Europe/Stockholm"), known=True)
    jump = int(change.timestamp()) - start
    sunday = 6 * DAY
    seconds = np.array([jump - 1, jump, jump + 1])
    expected = [sunday + before, sunday + after, sunday + after + 1]
    assert expected == clock.second_of_week(seconds).tolist()


@given(
    start=st.integers(1, 4_000_000_000),
    zone=st.sampled_from(
        ["UTC", "Europe/Paris", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe"]
    ),
    seconds=st.lists(st.integers(0, 3 * 365 * DAY), min_size=1, max_size=20),
)
def test_second_of_week_agrees_with_local_time(start, zone, seconds):
    """The second of the week is that of the local date and time at every second."""
    clock = Clock(start, ZoneInfo(zone), known=True)
    expected = []
    for second in seconds:
        now = clock.local(second)
        expected.append(now.weekday() * DAY + now.hour * HOUR + now.minute * 60 + now.second)
    assert expected == clock.second_of_week(np.array(seconds)).tolist()


def test_second_of_week_keeps_the_shape():
    """The answer has the shape of the question."""
    expected = [[0, 1], [WEEK - 1, 0]]
    assert expected == Clock().second_of_week(np.array([[0, 1], [WEEK - 1, WEEK]])).tolist()
