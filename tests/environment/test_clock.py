"""Headers and local time: what a header says, and what time it is at a second of the run."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock
from hpcrowd.environment.clock import DAY, HOUR, zone_of
from hpcrowd.environment.header import UNKNOWN_VALUES
from hpcrowd.environment.traces.headers import left_out, parse_zone
from hpcrowd.traces import Header
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
    assert 5 == header("; MaxProcs: 5\n;   in 2 rooms").integer("MaxProcs")
    texts = ("; MaxProcs: 100\n; MaxNodes: 7", "; MaxProcs: -1\n; MaxNodes: 7", "; MaxNodes: 7", "")
    assert [100, 7, 7, None] == [header(text).processors for text in texts]


#: What may follow a number, and what may not.
NOTES = ["", "  ( 6,  171,   7)", " (dual CPU)", "   # of 70", "; 2 a node", " [1 down]", " CPUs",
         " processors (of 9)"]  # fmt: skip
OTHERS = [" x 64", " 024", "_024", ".024", ",24", ",0245", "e3", " nodes", " per node", " - 2", "k",
          "/2", "\u0661", " 2 (a)"]  # fmt: skip


def slowly(text):
    """The whole number at the beginning of a text, word by word; None if it is anything else."""
    for mark in "([#;":
        text = text.split(mark)[0]
    words = text.split()
    if len(words) not in (1, 2) or words[1:] not in ([], ["CPUs"], ["processors"]):
        return None
    first, _, last = re.sub("^[+-]", "", words[0]).partition(".")
    groups = first.split(",")
    good = all(one.isascii() and one.isdigit() for one in groups)
    good &= all(len(one) == 3 for one in groups[1:]) and (len(groups) == 1 or len(groups[0]) < 4)
    good &= "." not in words[0] or (last != "" and set(last) == {"0"})
    return int(words[0].split(".")[0].replace(",", "")) if good else None


@given(st.text("0123,.- (#;x_e", max_size=8) | st.builds(
    lambda number, style, more: style.format(number) + more, st.integers(0, 10**16 - 1),
    st.sampled_from(["{}", "{:,}", "{}.0", "+{}", "00{}"]), st.sampled_from(OTHERS + NOTES),
))  # fmt: skip
def test_numbers_are_read_whole_or_left_out_aloud(text):
    """Plain or in groups, with a note; of anything else the reader says line, key and value."""
    some = header(f"; Note: a\n; MaxProcs: {text}")
    value = some.get("MaxProcs")
    assert slowly(value) == some.integer("MaxProcs")
    told = slowly(value) is None and value not in UNKNOWN_VALUES
    expected = [f"lines: line 2, MaxProcs: {value!r} is not a whole number"] if told else []
    assert expected == [reason.partition(" such as")[0] for reason in left_out(some)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("; MaxNodes: 16 x 64", ["line 1, MaxNodes: '16 x 64'"]),
        ("; MaxNodes: 16 x 64\n; MaxProcs: 1024", []),
        ("; MaxProcs: unknown\n; MaxNodes: many\n; MaxJobs: 1e9", ["line 2, MaxNodes: 'many'"]),
        ("; UnixStartTime: 1e9", ["line 1, UnixStartTime: '1e9'"]),
        ("; UnixStartTime: 1000000000.5", ["line 1, UnixStartTime: '1000000000.5'"]),
        ("; UnixStartTime: 1" + 18 * "0", ["line 1, UnixStartTime: '1" + 18 * "0" + "'"]),
        ("; TimeZone: 3600\n; TimeZoneString: Nowhere/Land",
         ["line 2, TimeZoneString: 'Nowhere/Land'"]),
        ("; TimeZone: 7\n; TimeZoneString: UTC", []),
        ("; TimeZone: 7", ["line 1, TimeZone: '7'"]),
    ],
)  # fmt: skip
def test_what_counts_and_cannot_be_read(text, lines):
    """Size, start and zone are named where nothing else gives them; other keys are nobody's."""
    assert [f"lines: {line}" for line in lines] == [
        reason.partition(" is not a")[0] for reason in left_out(header(text))
    ]


#: Time zones of a header, and the hours that clocks there are ahead of UTC in January.
ZONES = [("-28800", -8), ("3600", 1), ("0", 0), ("+01:00", 1), ("-0330", -3.5), ("GMT+1", 1),
         ("UTC-8", -8), ("GMT +1", 1), ("UTC+05:45", 5.75), ("+1800", 0.5), ("+1400", 14),
         ("Etc/GMT+1", -1), ("Europe/Paris  # CET (UTC+1)", 1), ("US/Pacific (daylight)", -8),
         ("Asia/Kolkata IST", 5.5), ("EST5EDT", -5),
         *((bad, None) for bad in ("+15:00", "+01:07", "GMT 1", "CET-1CEST", "7",
                                   "1000", "99999", "", "+25"))]  # fmt: skip


@pytest.mark.parametrize(("text", "hours"), ZONES)
@pytest.mark.parametrize("key", ["TimeZone", "TimeZoneString"])
def test_zones_of_a_header(key, text, hours):
    """Names, and offsets in hours or seconds that are positive in the east; else UTC and a note."""
    clock = Clock.of(header(f"; UnixStartTime: 1041377305\n; {key}: {text}"))
    assert (hours is not None) == clock.known
    assert (hours or 0) * HOUR == clock.ahead(0)
    assert clock.ahead(0) == Clock(clock.unix_start, parse_zone(str(clock.zone))).ahead(0)


@given(st.integers(-56, 56))
def test_offsets_read_back_as_themselves(quarters):
    """Hours and minutes, with or without a colon, seconds, and as Python writes zones."""
    seconds = 900 * quarters
    minutes = abs(seconds) // 60
    text = f"{'-' if quarters < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    zone = zone_of(text)
    assert timedelta(seconds=seconds) == zone.utcoffset(None)
    for other in (text.replace(":", ""), f"UTC{text}", f"GMT{text}", str(seconds), str(zone)):
        assert zone.utcoffset(None) == zone_of(other).utcoffset(datetime(2024, 1, 1)), other


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
