"""The state of a cluster as a file: what is written is read again, what is broken is refused."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import ParseError, QuantityError, TraceError
from hpcrowd.environment.jobs import Column, JobTable
from hpcrowd.environment.requests import WORDS, Ask, Requests
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.files import NUMBERS, read_state, write_state
from hpcrowd.environment.state.state import ClusterState, check_state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Edit = Callable[[str], str]

#: Noon of a day in January, Unix time.
NOON = 1_706_702_400


def small(**changes):
    """A job that is over, one that runs, one that waits and one that is held, at second 1,000."""
    jobs = JobTable()
    jobs.append(
        4,
        number=[7, 8, 9, 10],
        user=[1, 2, 1, 3],
        queue=[1, 1, 2, 2],
        processors=[4, 6, 8, 2],
        requested_time=[600, 3600, 600, -1],
        recorded_submit=[0, 100, 900, 950],
        recorded_start=[10, 200, -1, -1],
        recorded_end=[500, -1, -1, -1],
        run_time=[490, -1, -1, -1],
    )
    jobs.names = {
        "user": {1: "ada", 2: "Zoë\t\x1b[31m", 3: "-"},
        "queue": {1: "main", 2: "gpu"},
        "job": {7: "77_1", 10: "80"},
    }
    jobs.requests = Requests(4)
    jobs.requests.set(2, Ask.FEATURES, "a100|v100")
    jobs.requests.set(2, Ask.MEMORY_PER_NODE, 0)
    jobs.requests.set(3, Ask.PARTITIONS, "gpu,main")
    jobs.requests.set(3, Ask.NICE, -5)
    made = ClusterState(
        jobs, 1000, Clock(NOON, ZoneInfo("Europe/Berlin"), known=True), 10, 2,
        ((2000, 3000), (5000, 6000)), "made", held={3: "JobHeldUser"},
        placed={
            1: Placed("main", ("n1", "n2", "n07"), (), 150),
            2: Placed(eligible=2000, reason="BeginTime"),
        },
        partitions=("gpu", "main"), notes=("1 job dropped: no reason",),
    )  # fmt: skip
    return replace(made, **changes)


def same(one, other):
    """Check that two states are the same, but for their sources and lines."""
    for column in (*(column for column, _, _ in NUMBERS.values()), Column.STATE, Column.SUBMIT):
        assert one.jobs.column(column).tolist() == other.jobs.column(column).tolist(), column
    used = {
        field: {n: name for n, name in known.items() if name and n in numbers_of(one, field)}
        for field, known in one.jobs.names.items()
    }
    assert {field: known for field, known in used.items() if known} == other.jobs.names
    assert (one.jobs.requests is None) == (other.jobs.requests is None)
    if one.jobs.requests is not None and other.jobs.requests is not None:
        for ask in Ask:
            if ask in WORDS:
                assert one.jobs.requests.texts(ask) == other.jobs.requests.texts(ask)
            else:
                assert one.jobs.requests[ask].tolist() == other.jobs.requests[ask].tolist()
    for name in ("now", "clock", "processors", "down", "closed", "held", "partitions", "notes",
                 "placed"):  # fmt: skip
        assert getattr(one, name) == getattr(other, name), name
    clocks = [(found.nominal, found.note, found.local(500)) for found in (one.clock, other.clock)]
    assert clocks[0] == clocks[1]


def numbers_of(state, field):
    """The numbers of a field that jobs have."""
    column = state.jobs.number if field == "job" else state.jobs.column(Column[field.upper()])
    return set(column.tolist())


def lines_of(path):
    """The lines of a snapshot of :func:`small`."""
    write_state(small(), path)
    return path.read_text().splitlines()


def refused(path, lines):
    """The message for these lines, without the folder; it is one line that a terminal may show."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises((TraceError, QuantityError)) as caught:
        read_state(path)
    message = str(caught.value)
    assert message.isprintable()
    return message.removeprefix(f"{path.parent}/")


def changed(line, **values):
    """A line with other values; None removes one."""
    record = json.loads(line) | values
    return json.dumps({key: value for key, value in record.items() if value is not None})


@pytest.mark.parametrize("end", ["", ".gz"])
def test_round_trip(tmp_path, end):
    """All comes back, with the lines of the file; the same state gives the same bytes."""
    first, again, other = (tmp_path / f"{name}{end}" for name in "abc")
    write_state(small(), first)
    found = read_state(first)
    same(small(), found)
    assert str(first) == found.source
    assert found.lines is not None
    assert [2, 3, 4, 5] == found.lines.tolist()
    parts = (found.running, found.waiting, found.over)
    assert ([1], [2, 3], [0]) == tuple(rows.tolist() for rows in parts)
    assert bool(end) == first.read_bytes().startswith(b"\x1f\x8b")
    write_state(found, again)
    write_state(small(source=str(first)), other)
    assert again.read_bytes() == other.read_bytes()
    odd = small(clock=Clock(NOON, timezone(timedelta(minutes=7)), known=True))
    with pytest.raises(QuantityError, match=r"zone UTC\+00:07: has no name that a file can hold"):
        write_state(odd, tmp_path / "now")
    assert {first, again, other} == set(tmp_path.iterdir())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
#: Bytes that were not UTF-8, as Python keeps them.
NAMES = TEXTS | st.binary(max_size=4).map(lambda one: one.decode("utf-8", "surrogateescape"))
NUMBER = st.integers(-1, 2**53)
NODES = st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,3}", fullmatch=True), max_size=4).map(tuple)
PLACES = st.builds(Placed, TEXTS, NODES, st.just(()), st.integers(-1, 2**53), TEXTS.filter(bool))


#: What is not known of a clock stays unknown.
CLOCKS = (
    Clock(), Clock(NOON), Clock(NOON, ZoneInfo("UTC"), known=True),
    Clock(1, ZoneInfo("Asia/Tokyo"), known=True), Clock(NOON, ZoneInfo("Asia/Kathmandu")),
)  # fmt: skip


@st.composite
def states(draw):
    """Any state that does not contradict itself."""
    size = draw(st.integers(0, 6))
    now = draw(st.integers(0, 10**6))
    jobs = JobTable()
    jobs.append(size)
    jobs.number[:] = draw(st.permutations(range(-2, 20)))[:size]
    for row in range(size):
        times = sorted(draw(st.lists(st.integers(0, now), min_size=3, max_size=3)))
        kind = draw(st.sampled_from(("over", "runs", "waits", "taken back")))
        jobs.recorded_submit[row] = times[0]
        jobs.recorded_start[row] = times[1] if kind in ("over", "runs") else -1
        jobs.recorded_end[row] = times[2] if kind in ("over", "taken back") else -1
        if kind == "over":
            jobs.run_time[row] = draw(st.sampled_from((times[2] - times[1], -1, 17)))
        jobs.requested_time[row] = draw(st.integers(-1, 10**9))
        jobs.processors[row] = draw(st.integers(1, 1000))
        for name in ("user", "group", "executable", "queue", "session", "batch"):
            jobs.column(Column[name.upper()])[row] = draw(st.integers(-1, 9))
        jobs.requested_memory[row] = draw(NUMBER)
    jobs.names = {
        field: draw(st.dictionaries(st.integers(0, 9), NAMES, max_size=4))
        for field in draw(st.sets(st.sampled_from(("user", "group", "executable", "queue", "job"))))
    }
    if draw(st.booleans()):
        jobs.requests = Requests(size)
        for row in range(size):
            for ask in draw(st.sets(st.sampled_from(list(Ask)), max_size=4)):
                jobs.requests.set(row, ask, draw(TEXTS if ask in WORDS else NUMBER))
    found = ClusterState(
        jobs, now,
        draw(st.sampled_from(CLOCKS)),
        10_000, draw(st.integers(0, 4000)),
        draw(st.sampled_from(((), ((-5, now), (now, now + 1))))), draw(TEXTS.filter(bool)),
        notes=tuple(draw(st.lists(TEXTS.filter(bool), max_size=2))),
    )  # fmt: skip
    held = draw(st.sets(st.sampled_from(found.waiting.tolist()))) if len(found.waiting) else set()
    known = draw(st.sets(st.integers(0, size - 1))) if size else set()
    return replace(
        found,
        held={row: draw(TEXTS.filter(bool)) for row in sorted(held)},
        placed={row: draw(PLACES) for row in sorted(known)},
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(state=states())
def test_any_state(tmp_path, state):
    """Whatever is in a state comes back."""
    write_state(state, tmp_path / "any")
    same(state, read_state(tmp_path / "any"))


# ---------------------------------------------------------------------------------------- refusals

#: Line of the file, what replaces it, and words of the message.
BROKEN: list[tuple[int, Edit | dict[str, Any], str]] = [
    (1, {"version": 2}, "version: '2': this hpcrowd reads version 1; install a newer"),
    (1, {"format": "hpcrowd states"}, "format: 'hpcrowd states': must be 'hpcrowd state'"),
    (1, {"now": None}, "now: '': is missing"),
    (1, {"now": -1}, "now: '-1': not a whole number from 0 to"),
    (1, {"size": 3}, "size: '': key not known"),
    (1, {"zone": "Europe/Atlantis"}, "zone: 'Europe/Atlantis': not known; use a name such as"),
    (1, {"known": 1}, "known: '1': neither true nor false"),
    (1, {"origin": 0}, "origin: '0': not a whole number from 1 to"),
    (1, lambda line: json.dumps(json.loads(line) | {"origin": None}),
     "known: 'True': the origin is not known"),
    (1, {"processors": 0}, "processors: '0': not a whole number from 1 to 100,000,000"),
    (1, {"closed": [[1, 2, 3]]}, "closed: '[1, 2, 3]': not a list of two times"),
    (1, {"partitions": "main"}, "partitions: 'main': not a list"),
    (1, {"notes": [1]}, "notes: '1': not a text"),
    (1, {"source": ""}, "source: '': not a text, or an empty one"),
    (3, lambda line: line[:40], "column"),
    (3, lambda line: "", ": an empty line"),
    (2, lambda line: "[1, 2]", ": not an object of JSON"),
    (4, lambda line: '{"number":' + "[" * 200_000, "nested too deeply"),
    (4, lambda line: line.replace("9,", "9" * 5000 + ",", 1), "a number with too many digits"),
    (4, lambda line: line.replace("9,", "NaN,", 1), "'NaN': not a number"),
    (4, lambda line: line.replace("9,", "9.0,", 1), "number: '9.0': not a whole number"),
    (4, {"number": True}, "number: 'True': not a whole number"),
    (4, {"number": 2**60}, "number: '1152921504606846976': not a whole number"),
    (4, {"processors": 0}, "processors: '0': not a whole number from 1 to 100,000,000"),
    (4, {"submit": None}, "submit: '': is missing"),
    (4, {"user_name": 7}, "user_name: '7': not a text"),
    (4, {"user_name": "eve"}, "user_name: 'eve': user 1 is 'ada' in an earlier line"),
    (4, {"group_name": "g"}, "group_name: 'g': a name without group"),
    (4, lambda line: line.replace('"ada"', r'"\ud800"'), "write the snapshot again"),
    (4, {"sbmit": 1}, "sbmit: '': key not known; did you mean submit?"),
    (4, lambda line: line[:-1] + ', "user": 1}', "'user': a key that is there twice"),
    (4, {"asks": [1]}, "asks: '[1]': not an object"),
    (4, {"asks": {"featurs": "a"}}, "asks: 'featurs': key not known; did you mean features?"),
    (4, {"asks": {"features": 3}}, "asks features: '3': not a text"),
    (4, {"asks": {"nodes": -2}}, "asks nodes: '-2': not a whole num"),
    (3, {"run_time": 50}, "run_time: '50': not known of a job that has no end"),
    (3, {"nodes": "n[1-"}, "nodes: 'n[1-': brackets do not match"),
    (4, {"eligible": "soon"}, "eligible: 'soon': not a whole number"),
    (3, {"held": "no"}, "held: 'no': job 8: only a job that waits is held"),
    # Contradictions with the moment, the machine, or another job.
    (4, {"number": 8}, "number: '8': job 8: another job has this number (line 3)"),
    (3, {"start": 99}, "start: 'Wed 2024-01-31 13:01:39': job 8: earlier than its subm"),
    (2, {"end": 5}, "end: 'Wed 2024-01-31 13:00:05': job 77_1: earlier than its start"),
    (3, {"start": 1001}, "start: 'Wed 2024-01-31 13:16:41': job 8: later than the moment"),
    (2, {"end": 1001}, "end: 'Wed 2024-01-31 13:16:41': job 77_1: later than the moment"),
    (4, {"submit": 1001}, "submit: 'Wed 2024-01-31 13:16:41': job 9: later than the moment"),
    (4, {"processors": 11}, "processors: '11': job 9: waits, and the machine has 10; "),
    (3, {"queue": 3, "queue_name": "mian", "partition": None}, "queue: 'mian': job 8: no such "
     "partition; did you mean main?"),
    (3, {"partition": "old"}, "queue: 'old': job 8: no such partition; there are gpu, main"),
    (5, {"asks": {"partitions": "main,long"}}, "queue: 'long': job 80: no such partition"),
    (2, {"processors": 10**8, "run_time": 2**53}, "run_time: '9007199254740992': job 77_1: the "
     "jobs have 9e+23 processor-seconds in all, too many to add"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "edit", "words"), BROKEN)
def test_broken_lines(tmp_path, number, edit, words):
    """Each is one line with file, line, value, rule and cure."""
    lines = lines_of(tmp_path / "now")
    line = lines[number - 1]
    lines[number - 1] = changed(line, **edit) if isinstance(edit, dict) else edit(line)
    found = refused(tmp_path / "now", lines)
    assert words in found
    assert found.startswith(f"now, line {number}{', field ' if number == 1 else ''}")


def test_headers_that_are_not_of_the_jobs(tmp_path):
    """Requests that it does not announce, and fewer or more lines than it says, are noticed."""
    first, *jobs = lines_of(tmp_path / "now")

    def found(header, *lines):
        return refused(tmp_path / "now", [header, *lines])

    assert "now, line 4, field asks: " in found(changed(first, requests=False), *jobs)
    assert "now, line 5: more jobs than the 3 of" in found(changed(first, jobs=3), *jobs)
    assert "now: 3 lines of jobs, and its header says 4; the file is cut short" in found(
        first, *jobs[:-1]
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty; write the snapshot again"),
        (b"; SWF\n1 2 3\n", "is not a snapshot of hpcrowd; its first line has no"),
        (b'{"format": "hpcrowd state", \xff}', "line 1: "),
        (b"\x1f\x8b\x08\x00", "the gzip file is cut short"),
        (b"{" + b" " * 2**21, "longer than 1,048,576 bytes"),
        (gzip.compress(b'{"format": "hpcrowd state"' + b" " * 2**24, 9), "longer than 1,048,576"),
    ],
)
def test_other_files(tmp_path, data, message):
    """Anything but a snapshot is refused at its beginning, however large it would be unpacked."""
    (tmp_path / "now").write_bytes(data)
    with pytest.raises(TraceError, match=message):
        read_state(tmp_path / "now")


def test_written_whole_or_not_at_all(tmp_path):
    """A state that cannot be read again leaves the file that was there."""
    write_state(small(), tmp_path / "now")
    before = (tmp_path / "now").read_bytes()
    wrong, known = small(), small()
    wrong.jobs.user[0] = 2**60
    known.jobs.run_time[1] = 900
    for state, path, message in (
        (wrong, "now", "made: job 77_1, user 1152921504606846976: must be from"),
        (known, "now", "job 8, run_time 900: nobody knows it before the end"),
        (small(notes=("x" * 2**20,)), "now", "line 1 would have 1,04"),
        (small(), "none/now", "cannot be written"),
    ):
        with pytest.raises(TraceError, match=message):
            write_state(state, tmp_path / path)
    assert [tmp_path / "now"] == list(tmp_path.iterdir())
    assert before == (tmp_path / "now").read_bytes()


def test_contradictions_without_a_file(make_jobs):
    """Without lines, the source and the job are named; of too many the last one to start."""
    jobs = make_jobs((0, 9, 4), (1, 9, 4), (2, 9, 4))
    jobs.recorded_submit[:] = 0
    jobs.recorded_start[:] = (7, 3, 5)
    jobs.recorded_end[:] = jobs.run_time[:] = -1
    state = ClusterState(jobs, 10, Clock(), 11, source="made")
    with pytest.raises(TraceError, match=r"^made: job 1, processors 4: 3 running jobs") as one:
        check_state(state)
    assert not isinstance(one.value, ParseError)
    assert [] == check_state(replace(state, processors=12))
    before = small()
    before.jobs.recorded_submit[3] = -1
    for wrong, message in (
        (small(down=11), "made: 11 processors down, and the machine has 10"),
        (small(closed=((5, 5),)), "the end must be later than the beginning"),
        (before, "job 80, submit -1: every job of a state has been submit"),
    ):
        with pytest.raises((QuantityError, TraceError), match=message):
            check_state(wrong)


def test_against_a_machine():
    """The size and the partitions count; jobs that are held may ask for anything."""
    state = small(partitions=())
    machine = replace(state, processors=8, partitions=("main", "gpu"))
    assert [] == check_state(machine)
    state.jobs.processors[2] = 9
    assert [] == check_state(state)
    with pytest.raises(TraceError, match="job 9, processors 9: waits, and the machine has 8"):
        check_state(machine)
    held = replace(machine, held={2: "PartitionNodeLimit"})
    assert [] == check_state(held)
    with pytest.raises(TraceError, match="job 9, queue gpu: no such partition; there are main"):
        check_state(replace(held, partitions=("main",)))


def test_rejected_jobs_of_a_run_are_over(make_jobs):
    """A job that the machine refused does not wait for ever."""
    jobs = make_jobs((0, 100, 4), (1, 50, 40), (2, 60, 8))
    run = Simulation(jobs, 10, "fcfs", plain=True)
    run.cluster.submit(np.arange(3), jobs.recorded_submit)
    run.run()
    state = ClusterState.of(jobs, 10, Clock(), 10, simulated=True)
    parts = (state.running, state.waiting, state.over)
    assert ([0], [2], [1]) == tuple(rows.tolist() for rows in parts)
    assert [] == check_state(state)


def test_running_longer_than_requested_is_a_remark():
    """Real resource managers stop jobs only now and then, and archives have far longer ones."""
    state = small()
    state.jobs.requested_time[1] = 700
    assert ["1 job running longer than requested, by up to 100 s"] == check_state(state)
