"""Malformed accounting of Slurm: rows that are mended, and one line about all others."""

import re
from dataclasses import replace

import pytest
from hpcrowd import read_trace
from hpcrowd.environment.traces.formats.slurm import table as sacct_table
from hpcrowd.environment.traces.formats.slurm.columns import COLUMNS, COMMAND
from hpcrowd.environment.traces.formats.slurm.mending import SURPLUS, UNCLEAR
from hpcrowd.errors import ParseError, TraceError
from hpcrowd.formats import FormatOptions, Losses, generate_sacct, parse_sacct
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import shown
from tests.support.sacct import JOB, ODD, STEP, UTC, read, table, text, without

STRICT = replace(UTC, strict=True)


def refused(data, options=STRICT):
    """Return the error that a text gives; it is short and names the file."""
    with pytest.raises(TraceError) as caught:
        parse_sacct(data, "logs/jobs.txt", options)
    told = str(caught.value)
    assert len(told) < 400
    assert told.startswith("logs/jobs.txt")
    return caught.value


def place(error):
    """Line, column and value of an error."""
    assert isinstance(error, ParseError)
    return error.line, error.field, error.value


BAD = {
    "Submit": ("yesterday", "2024-02-30T00:00:00", "2024-01-31", "12:00:00", "2024-01-31T25:00:00",
               "-1", "1900-01-01T00:00:00", "2201-01-01T00:00:00"),
    "Start": ("2024-01-31T12:00:00+1", "1e9", "99999999999"),
    "ElapsedRaw": ("1h", "-5", "1.5", "9007199254740994", "nan"),
    "AllocCPUS": ("1.5", "-1", "1_000", "1KK", "9" * 30, " 4"),
    "TimelimitRaw": ("01:00:00", "forever", "9007199254740990"),
    "ReqMem": ("4X", "4Gx", "Gc", "-4G", "9999999999P"),
    "TotalCPU": ("1:2:3:4", "10", "10:99", "ten"),
    "State": ("DONE", "", "COMPLETED_", "\u0661"),
    "JobID": ("", "1x", "1_", "1+", "1_[a]", "-1", "1 2"),
    "MaxRSS": ("5X", "5Kc", "-5K"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "word"), [(name, word) for name in BAD for word in BAD[name]])
def test_malformed_value(name, word):
    """A value that means nothing is a ParseError with line, column as it is spelled, and value."""
    row = {"JobID": "1.0" if name == "MaxRSS" else "3", name: word}
    data = text({}, row, {"JobID": "2"})
    assert (3, name, word) == place(refused(data))
    # by default it is unknown, or its row is left out, and all other rows are read
    trace = parse_sacct(data, "jobs.txt", UTC)
    left_out = name in ("State", "JobID")
    found, other = (trace.dropped, trace.repaired) if left_out else (trace.repaired, trace.dropped)
    (reason,) = found
    what = "left out" if left_out else "taken as unknown"
    assert reason.startswith(f"lines: {what}: {name}: ")
    assert reason.endswith("(first: line 3)")
    assert ({reason: 1}, {}) == (found, other)
    whole = parse_sacct(text({}, {"JobID": "2"}), options=UTC)
    fields = ("job_id", "user", "wait", "run", "status", "requested_memory", "average_cpu")
    assert set(shown(whole, *fields)) <= set(shown(trace, *fields))


@given(
    name=st.sampled_from(["Submit", "End", "ElapsedRaw", "AllocCPUS", "TimelimitRaw", "ReqMem",
                          "MaxRSS", "NTasks", "TotalCPU"]),
    word=st.text("0123456789.:-KMGc?", max_size=8),
)  # fmt: skip
def test_any_word_of_a_column(name, word):
    """A word that its parser takes is read; any other is counted by default, and else refused."""
    data = text({}, {"JobID": "1.0" if name in ("MaxRSS", "NTasks") else "3", name: word})
    layout = sacct_table.find_layout(data)
    assert layout is not None
    try:
        sacct_table._checks(layout)[name.lower()](word.encode())
    except ValueError as error:
        reason = f"lines: taken as unknown: {name}: {error} (first: line 3)"
        assert 1 == parse_sacct(data, options=UTC).repaired[reason]
        assert (3, name, word) == place(refused(data))
    else:
        assert table(parse_sacct(data, options=UTC)) == table(parse_sacct(data, options=STRICT))


def test_a_column_in_another_notation():
    """Of many values of a column, none of which can be read, the first is refused in any case."""
    rows = [{"JobID": str(place), "Submit": "yesterday"} for place in range(10)]
    assert (2, "Submit", "yesterday") == place(refused(text(*rows), UTC))
    known = parse_sacct(text(*rows, {"JobID": "11"}), options=UTC)
    assert [-1] * 10 + [0] == known["submit"].tolist()
    assert [-1] * 9 == parse_sacct(text(*rows[1:]), options=UTC)["submit"].tolist()


def test_commands_ask_for_columns_that_are_read(root):
    """The command of errors asks for what the tests show; that of the guide for nothing unused."""
    assert set(JOB) == set(COLUMNS)
    assert set(STEP) <= set(JOB)
    assert re.fullmatch(r"sacct -a -D -P -S now-90days --format=[\w,]+", COMMAND)
    guide = (root / "docs/guides/slurm.md").read_text()
    found = re.search(r"^sacct .* --format=([\w,]+) > jobs.txt$", guide, re.MULTILINE)
    assert found is not None
    layout = sacct_table.find_layout(found[1].replace(",", "|").encode() + b"\n")
    assert layout is not None
    assert [] == layout.unused


MANY = [{"JobID": str(number)} for number in range(1, 200)]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([*MANY, {"JobName": "a|b"}, {"ElapsedRaw": "?"}, {"State": "?"}], 202),
        ([*MANY, {"ElapsedRaw": "?"}, *MANY, {"JobName": "a|b"}], 201),
        ([*MANY, {"JobName": "a\nb"}, *MANY, {"ElapsedRaw": "?"}], 402),
    ],
)
@pytest.mark.parametrize("piece", [1000, 10**6])
def test_first_malformed_line_is_named(monkeypatch, rows, line, piece):
    """Of several the first is reported, in many pieces, too, and where rows were broken before."""
    monkeypatch.setattr(sacct_table, "PIECE", piece)
    assert (line, "ElapsedRaw", "?") == place(refused(text(*rows)))


STEP_OF_ANYTHING = {"JobID": "1.0", "Submit": "?", "State": "?", "ElapsedRaw": "?", "MaxRSS": "3K"}


def test_rows_that_are_passed_over():
    """A row that is cut off is left out, as are zeros; other columns of steps may say anything."""
    data = text({}, {"JobID": "2"}, {"JobID": "3"})
    zero = parse_sacct(data.replace(b"relax", b"re\0ax", 1), options=UTC)
    assert {"lines: left out: a zero byte; not text (first: line 2)": 1} == zero.dropped
    for cut, line in ((data.replace(b"2|ada|", b"2|"), 3), (data[:-40], 4),
                      (data.replace(b"relax", b"|" * 5000, 1), 2)):  # fmt: skip
        trace = parse_sacct(cut, options=UTC)
        assert 2 == len(trace)
        assert {f"{UNCLEAR} (line {line})": 1} == trace.dropped
    other = data.replace(b"Submit|Start", b"Start|Submit")
    assert "second header" in str(refused(data + other, UTC))
    assert [3] == read({}, STEP_OF_ANYTHING)["memory"].tolist()


@pytest.mark.parametrize(
    ("data", "line", "rule"),
    [
        (text({}).split(b"\n")[0] + b"\n\n", None, "contains no jobs"),
        (text({})[:-40], 2, ""),  # nothing is left
        ("JobID|State".encode("utf-16"), None, "binary file"),
        (text({}, {"JobName": "a\0b"}), 3, "\\0"),
        (text({}).split(b"\n", 1)[1], 1, "no header with the names of its columns; write it again"),
        (b"JobID           Submit      State \n------- -------- ------\n1 2024 CD\n", 1,
         "columns of fixed width, which cut values off; write it again with -P"),
        (text({"JobName": "x" * (2**20 + 1), "State": "?"}), 2, "longer than"),
        (text({"ElapsedRaw": "7" * 5000}), 2, "..."),
        (text({"Submit": "31 Jan 12:00"}), 2, "leave SLURM_TIME_FORMAT alone"),
        # a column that is needed is named, with a command that writes all that are of use
        *((b"\n\n" + without(*columns), 3, rule) for columns, rule in (
            (["JobID"], "not a header of sacct"), (["Submit"], "no column Submit"),
            (["State"], "no column State"),
            (["AllocCPUS", "ReqCPUS"],
             "no column AllocCPUS or NCPUS or AllocTRES or ReqCPUS or ReqTRES"),
            (["Start", "End"], "no column Start or End"),
            (["ElapsedRaw", "End"], "no column ElapsedRaw or Elapsed or End"))),
    ],
    ids=range(15),
)  # fmt: skip
def test_other_texts(data, line, rule):
    """Whatever else is given is reported in one line, with a cure if there is one."""
    error = refused(data)
    assert rule in str(error)
    assert (COMMAND in str(error)) >= rule.startswith(("no column", "not a header"))
    assert line is None or line == place(error)[0]


#: Values that mean something in some column.
WORDS = (b"", b"0", b"1", b"Unknown", b"PENDING", b"CANCELLED", b"NODE_FAIL", b"101_1", b"120+1",
         b"120+0.1", b"100", b"2024-10-27T02:10:00", b"9007199254740992")  # fmt: skip
HEAD, *LINES = [line.split(b"|") for line in ODD.split(b"\r\n") if line]


@given(
    lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=6),
    changes=st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 22)), st.sampled_from(WORDS), max_size=3
    ),
    zone=st.sampled_from([None, "Europe/Paris"]),
)
def test_whatever_rows_stand_together(lines, changes, zone):
    """Rows of all kinds in any order are a trace that reads back, or one clear error."""
    rows = [HEAD, *map(list, lines)]
    for (row, column), word in changes.items():
        rows[1 + row % len(lines)][column] = word
    options, lost = FormatOptions(zone=zone, strict=True), Losses()
    try:
        trace = parse_sacct(b"\n".join(map(b"|".join, rows)), "odd.txt", options)
    except TraceError as error:
        said = str(error)
        assert "cannot be read as" not in said
        return
    assert table(trace) == table(parse_sacct(generate_sacct(trace, lost, options), "x", options))
    allowed = {
        "components",
        "header",
        "job_id",
        "executable",
        "restarts",
        "lost_work",
        "final_state",
    }
    assert allowed >= {field for field, _ in lost.counts}


#: Names that break rows: no letter is lost or added.
NAMES = st.text("ab|\n |;x", min_size=1, max_size=12).map(str.strip).filter(bool)


def ordered(order, *rows):
    """Rows of jobs with columns in this order."""
    more = dict.fromkeys(order, "")
    filled = ([(more | JOB | row)[name] for name in order] for row in rows)
    return "".join("|".join(row) + "\n" for row in [order, *filled]).encode()


def names_of(trace):
    """Names of the programs of jobs, by job."""
    names = trace.names.get("executable", {})
    return [names.get(number, str(number)) for number in trace["executable"].tolist()]


@settings(max_examples=50)
@given(
    names=st.lists(NAMES, min_size=2, max_size=5),
    order=st.permutations(list(JOB)),
    last=st.booleans(),
    more=st.sampled_from([[], ["ExitCode"]]),
    upper=st.booleans(),
)
def test_any_order_of_columns(names, order, last, more, upper):
    """In any order and case of columns the name is found, or its row left out and counted."""
    order = [name for name in order if name != "JobName"]
    order.insert(len(order) if last else len(order) // 2, "JobName")
    order = [*more, *order]
    rows = [{"JobID": str(number), "JobName": name} for number, name in enumerate(names, 10)]
    head, rest = ordered(order, {}, *rows).split(b"\n", 1)
    trace = parse_sacct((head.upper() if upper else head) + b"\n" + rest, options=UTC)
    ids = list(trace.extra["job_id"])
    whole = dict(zip(ids, names_of(trace), strict=True))
    assert whole.pop("1") == "relax"
    assert table(read({})) == table(trace)[:1]
    right = [name == names[int(one) - 10] for one, name in whole.items()]
    assert all(right) or trace.dropped
    assert bool(trace.dropped) >= (len(whole) < len(names))


@settings(max_examples=50)
@given(names=st.lists(NAMES, min_size=1, max_size=4), line=NAMES, comment=NAMES)
def test_several_columns_of_free_text(names, line, comment):
    """Known columns between two of free text part what belongs to each."""
    order = ["JobID", "User", "Account", "JobName", "Partition", "Submit", "Start", "End",
             "ElapsedRaw", "State", "AllocCPUS", "Comment", "SubmitLine"]  # fmt: skip
    rows = [{"JobID": str(number), "JobName": name, "Comment": comment, "SubmitLine": line}
            for number, name in enumerate(names, 10)]  # fmt: skip
    trace = parse_sacct(ordered(order, {"SubmitLine": "sbatch x"}, *rows), options=UTC)
    found = dict(zip(trace.extra["job_id"], names_of(trace), strict=True))
    for number, name in enumerate(names, 10):
        assert found[str(number)] == name


@settings(max_examples=30)
@given(
    rows=st.lists(
        st.fixed_dictionaries({"JobName": NAMES, "Comment": st.sampled_from(["", "x", "a|b"])}),
        min_size=1, max_size=5),
    order=st.sampled_from([("JobName", "Comment"), ("JobName", "Partition", "Comment"),
                           ("Comment", "QOS", "JobName")]),
    odd=st.sampled_from([{}, {"Comment": "c"}, {"Layout": "Block"}]),
)  # fmt: skip
def test_a_row_is_read_alike_in_every_file(rows, order, odd):
    """Whatever other rows there are, a row is put together as if it were the only one."""
    rest = [name for name in JOB if name not in order]
    columns = [rest[0], *order, *rest[1:], "ExitCode", "Layout"]
    rows = [row | {"JobID": str(number)} for number, row in enumerate(rows, 10)]

    def read_with(*rows):
        try:
            trace = parse_sacct(ordered(columns, {}, *rows), options=UTC)
        except ParseError:
            reject()  # the second line of a name may be a row of its own, and a malformed one
        return dict(zip(trace.extra["job_id"], names_of(trace), strict=True))

    alone = {}
    for row in rows:
        alone |= read_with(row)
    assert alone == read_with(*rows)
    assert alone | {"2": "relax"} == read_with(odd | {"JobID": "2"}, *rows)


@pytest.mark.parametrize(
    "delimiter",
    ["|", "\u00a6", ",", ";", "\t", "\x1f", ":", "%", "\\", "'", "@@", "::", "|||", ";;"],
)
def test_delimiters(delimiter):
    """``--delimiter`` takes any text, which is found from the header."""
    unix = {"TotalCPU": "", "Submit": "1706702400", "Start": "1706702700", "End": "1706703300"}
    names = ["relax"] if len(delimiter) == 1 else ["relax", f"a{delimiter[0]}b", "x\ny"]
    rows = [{"JobID": str(n)} | unix | {"JobName": name} for n, name in enumerate(names, 1)]
    trace = parse_sacct(text(*rows, delimiter=delimiter), options=UTC)
    assert table(parse_sacct(text(unix), options=UTC))[0] == table(trace)[0]
    assert names == names_of(trace)
    cut = text(unix, delimiter=delimiter).decode().rpartition(delimiter)[0]
    told = str(refused(cut.encode()))
    assert f"separated by {delimiter!r}" in told
    assert repr(cut.splitlines()[1])[:40] in told


def test_rows_that_cannot_be_mended():
    """Of two columns of free text side by side a surplus is left out; pieces change nothing."""
    order = ["JobID", "Comment", "JobName", *(n for n in JOB if n not in ("JobID", "JobName"))]
    rows = [{"Comment": "x"}, {"JobID": "2", "JobName": "a|b", "Comment": "c"}, {"JobID": "3"}]
    trace = parse_sacct(ordered(order, *rows), options=UTC)
    assert ["1", "3"] == list(trace.extra["job_id"])
    assert {f"{UNCLEAR} (line 3)": 1} == trace.dropped
    assert "1 line dropped: cells that cannot be assigned to the columns (line 3)" == trace.notes[0]
    many = [{"JobID": f"{one}", "JobName": "b" if one % 500 else "a\n"} for one in range(1, 9000)]
    assert {SURPLUS: 17} == parse_sacct(text(*many), options=UTC).repaired


#: Dumps of a real cluster with 409 jobs, those of the guide, and those with other numbers of jobs.
OTHERS = ("all-D-X.txt.gz", "all-D.txt.gz", "all-X.txt.gz", "all.txt.gz", "few.txt", "guide.txt",
          "tres.txt")  # fmt: skip
GUIDE = ("X-noD", "X", "delim2", "noD", "noconvert", "nonames", "p", "paris", "semicolon", "unitsG",
         "time-FTTz", "time-s", "time-standard", "unitsep")  # fmt: skip
MORE = {"guide-allstates.txt": 414, "guide-states.txt": 414, "lines.txt": 414,
        "guide-tame.txt": 407}  # fmt: skip


@pytest.mark.parametrize("name", [*(f"guide-{name}.txt" for name in GUIDE), *OTHERS, *MORE])
def test_dumps_of_a_real_cluster(slurm_dumps, name):
    """Every dump has all jobs; those with a delimiter or line end in their name keep it."""
    trace = read_trace(slurm_dumps / name, options=FormatOptions(zone="UTC"))
    assert MORE.get(name, 409) == len(trace)
    assert not any("assigned" in reason for reason in trace.dropped)
    if "executable" in trace.names and "tame" not in name:
        found = dict(zip(trace.extra["job_id"], names_of(trace), strict=True))
        assert ("a|b", "line1\nline2", "tab\there") == (found["291"], found["293"], found["296"])
