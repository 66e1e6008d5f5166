"""What the tests of formats share: traces that hypothesis makes, and what a format changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from hpcrowd.environment import Losses, Trace, TraceError
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.formats.common.names import NAMED, worded
from hpcrowd.environment.traces.trace import FIELDS
from hypothesis import strategies as st

#: Words as in logs, and words that are hard on formats.
WORDS = st.one_of(
    st.sampled_from(["alice", "bob", "7", "007", "-1", "", "None", "a b", "x,y", 'q"q', "#", "é"]),
    st.text(max_size=6),
)
WHOLE = st.one_of(st.integers(-1, 50), st.integers(-(2**40), 2**40)).map(float)
TIMES = st.one_of(WHOLE, st.floats(0, 1e6, allow_subnormal=False), st.just(1.3e9))


@st.composite
def any_trace(draw: st.DrawFn, extras: tuple[str, ...] = ("job_id", "project")) -> Trace:
    """Traces with names, columns of other formats, unknown values, fractions and odd headers."""
    jobs = draw(st.integers(1, 5))
    columns, names, extra = {}, {}, {}
    for field in FIELDS:
        values = WHOLE if field in NAMED or draw(st.booleans()) else TIMES
        drawn = draw(st.lists(values, min_size=jobs, max_size=jobs))
        if field in NAMED and draw(st.booleans()):
            drawn = [float(number) for number in draw(st.lists(
                st.integers(-1, 3), min_size=jobs, max_size=jobs))]  # fmt: skip
            named = WORDS.filter(lambda word: word != "-1")  # which is what stands for no name
            names[field] = draw(st.dictionaries(st.integers(1, 3), named))
        columns[field] = np.array(drawn)
    for name in extras:
        if draw(st.booleans()):
            words = draw(st.lists(WORDS, min_size=jobs, max_size=jobs))
            extra[name] = np.array(words, np.object_)
    header = draw(st.lists(st.sampled_from(
        [b"; UnixStartTime: 1000", b"; MaxProcs: 40", b"; Note: # ;", b";", b"", b"; \xe9"]
    ), max_size=3))  # fmt: skip
    return Trace(Header(header), columns, names=names, extra=extra)


def changes(trace: Trace, back: Trace) -> Counter[str]:
    """Of how many jobs each field, or column of another format, is not what it was."""
    found: Counter[str] = Counter()
    assert len(trace) == len(back)
    for field in FIELDS:
        if field in NAMED:
            before, after = worded(trace, field), worded(back, field)
            found[field] = sum(one != other for one, other in zip(before, after, strict=True))
        else:
            found[field] = int(np.sum(trace[field] != back[field]))
    nothing = np.array([""] * len(trace), np.object_)
    for name in trace.extra.keys() | back.extra.keys():
        one, other = trace.extra.get(name, nothing), back.extra.get(name, nothing)
        found[name] = int(np.sum((one != "") & (one != other)))
    return +found


def counted(lost: Losses) -> Counter[str]:
    """What was counted as lost, by field, without lines of the header."""
    found: Counter[str] = Counter()
    for (field, _), count in lost.counts.items():
        if field not in ("header", "comments"):
            found[field] += count
    return found


def round_trip(
    trace: Trace,
    generate: Callable[[Trace, Losses], bytes],
    parse: Callable[[bytes], Trace],
) -> Trace:
    """Write and read; check that what changed is what was counted. Return what was read."""
    lost = Losses()
    back = parse(generate(trace, lost))
    assert changes(trace, back) == counted(lost)
    return back


@st.composite
def damaged(draw: st.DrawFn, text: bytes) -> bytes:
    """A file with some bytes cut out and others put in."""
    data = bytearray(text)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        size = draw(st.one_of(st.integers(0, 9), st.integers(0, 200)))
        data[place : place + size] = draw(st.binary(max_size=4))
    return bytes(data)


def told_in_one_line(parse: Callable[[bytes], Trace], data: bytes) -> None:
    """Check that any bytes give a trace, or an error whose text is one short line."""
    try:
        parse(data)
    except TraceError as error:
        text = str(error)
    else:
        return
    assert 1 == len(text.splitlines())
    assert len(text) < 400
