"""CSV and Parquet with our columns: what is read, what is reported."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hpcrowd.environment import (
    Losses,
    ParseError,
    Trace,
    TraceError,
    generate_csv,
    generate_parquet,
    parse_csv,
    parse_parquet,
)
from hpcrowd.environment.header import Header
from hpcrowd.environment.traces.trace import FIELDS, MEANING


def parquet_of(**columns: list[object]) -> bytes:
    """A Parquet file as pandas writes it."""
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


def test_what_is_missing_is_unknown() -> None:
    """A table of two columns is a trace; jobs are numbered as they stand."""
    trace = parse_csv("run,submit\n60,5\n,6\n")
    assert [[5, 6], [60, -1], [1, 2]] == [trace[n].tolist() for n in ("submit", "run", "number")]
    for name in set(FIELDS) - {"submit", "run", "number"}:
        assert [-1, -1] == trace[name].tolist()


def test_quotes_blanks_and_other_line_ends() -> None:
    """Quoted values, blanks around, a mark at the beginning and CRLF are CSV, too."""
    trace = parse_csv(b'\xef\xbb\xbfsubmit, run ,"user_name"\r\n 5 ,"60","O""Neil, J."\r\n')
    assert (5, 60) == (trace["submit"][0], trace["run"][0])
    assert {"user": {1: 'O"Neil, J.'}} == trace.names


def test_names_next_to_numbers() -> None:
    """Names are those of the numbers next to them; without numbers they get some."""
    trace = parse_csv("submit,run,user,user_name,group_name\n0,1,7,eve,x\n0,1,-1,,y\n0,1,8,,x\n")
    assert {"user": {7: "eve"}, "group": {1: "x", 2: "y"}} == trace.names
    assert [1, 2, 1] == trace["group"].tolist()


def test_table_of_jobs_of_a_run() -> None:
    """The columns of jobs.parquet are understood: start, end, processors, state."""
    text = "number,submit,start,end,processors,state,recorded_submit\n3,5,7,10,4,killed,0\n"
    trace = parse_csv(text + "4,6,-1,-1,9,rejected,0\n")
    assert [2, -1] == trace["wait"].tolist()
    assert [3, -1] == trace["run"].tolist()
    assert [4, 9] == trace["requested_processors"].tolist()
    assert [0, 5] == trace["status"].tolist()
    assert {} == trace.extra


def test_other_columns_are_kept() -> None:
    """A column that means nothing here is kept as text, and written again."""
    trace = parse_csv("submit,run,site\n0,1,north\n5,1,\n")
    assert ["north", ""] == trace.extra["site"].tolist()
    lost = Losses()
    again = parse_csv(generate_csv(trace, lost))
    assert not lost
    assert ["north", ""] == again.extra["site"].tolist()


def test_parquet_keeps_everything() -> None:
    """Header, comments among jobs and line ends come back from Parquet byte for byte."""
    trace = parse_csv("submit,run\n0,1.5\n5,1\n")
    trace.header = Header([b"; MaxProcs: 4", b"; Note: caf\xe9"])
    trace.comments, trace.newline = [(1, b"; outage \xff")], b"\r\n"
    again = parse_parquet(generate_parquet(trace))
    assert trace.header.lines == again.header.lines
    assert (trace.comments, trace.newline) == (again.comments, again.newline)
    assert [1.5, 1] == again["run"].tolist()


def test_parquet_shows_what_columns_mean() -> None:
    """Each column has its meaning in its metadata."""
    import pyarrow.parquet as pq

    trace = parse_csv("submit,run\n0,1\n")
    schema = pq.read_schema(io.BytesIO(generate_parquet(trace)))
    assert dict(MEANING) == {
        name: schema.field(name).metadata[b"meaning"].decode() for name in FIELDS
    }


def test_parquet_of_a_data_frame() -> None:
    """What pandas writes is read: missing values are unknown, names are names."""
    data = parquet_of(submit=[0, 5], run=[1.0, None], user_name=["eve", None], status=[True, False])
    with pytest.raises(TraceError, match="column status holds bool, not numbers"):
        parse_parquet(data, "frame.parquet")
    trace = parse_parquet(parquet_of(submit=[0, 5], run=[1.0, None], user_name=["eve", None]))
    assert [1, -1] == trace["run"].tolist()
    assert {"user": {1: "eve"}} == trace.names


@pytest.mark.parametrize("value", [np.inf, 2.0**60, -(2.0**54)])
def test_parquet_with_odd_numbers(value: float) -> None:
    """A number that is not finite or not exact is reported with its row."""
    with pytest.raises(ParseError) as caught:
        parse_parquet(parquet_of(submit=[0, 5], run=[1.0, value]), "frame.parquet")
    assert ("frame.parquet", 2, "run") == (caught.value.path, caught.value.line, caught.value.field)


@pytest.mark.parametrize("where", [4, 200, -20, -6])
def test_damaged_parquet(where: int) -> None:
    """A changed byte is either harmless or reported as damage; never anything else."""
    data = bytearray(generate_parquet(parse_csv("submit,run\n" + "0,1\n" * 500)))
    data[where] ^= 0xFF
    try:
        trace = parse_parquet(bytes(data), "bad.parquet")
    except TraceError as error:
        text = str(error)
    else:
        text = "bad.parquet" if isinstance(trace, Trace) else ""
    assert text.startswith("bad.parquet")
    assert 1 == len(text.splitlines())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("submit,run\n", ("contains no jobs",)),
        ("submit,submit,run\n0,1,2\n", ("'submit'", "twice")),
        ("a,b\n0,1\n", ("no columns submit and run", "'a', 'b'", "--map")),
        ('submit,run\n0,"1\n', ("line 2",)),
        ("submit,run\n0,1,2\n", ("line 2", "3 values; the first line names 2 columns")),
        ("submit,run\n0\n", ("line 2", "1 values; the first line names 2 columns")),
        ("submit,run\n0,x\n", ("line 2, field run", "'x'", "not a number")),
        ("submit,run\n0,1\0\n", ("line 2", "zero byte")),
    ],
)
def test_what_is_not_a_table(text: str, parts: tuple[str, ...]) -> None:
    """What is wrong with a table is one line with its place."""
    with pytest.raises(TraceError) as caught:
        parse_csv(text, "bad.csv")
    for part in ("bad.csv", *parts):
        assert part in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_names_with_line_ends_of_any_kind() -> None:
    """Carriage returns and line feeds in names come back: such values are quoted."""
    trace = parse_csv("submit,run,user,user_name\n0,1,1,a\n5,1,2,b\n")
    trace.names["user"] = {1: "first\rlast", 2: 'x\r\ny "z"\n, w'}
    assert trace.names == parse_csv(generate_csv(trace)).names


def test_start_of_a_job_that_nobody_knows_when_submitted() -> None:
    """Without a submission there is no wait."""
    assert [-1, 3] == parse_csv("submit,start,run\n-1,50,1\n7,10,1\n")["wait"].tolist()


def test_text_that_csv_cannot_hold_is_counted() -> None:
    """Blanks around names, zero bytes, and odd names of columns are lost in CSV, and counted."""
    trace = parse_csv("submit,run,user,user_name\n0,1,1,a\n5,1,2,b\n")
    trace.names["user"] = {1: " a", 2: "b"}
    trace.extra = {"status ": np.array(["x", ""], object), "note": np.array(["n\0o", "z"], object)}
    lost = Losses()
    back = parse_csv(generate_csv(trace, lost))
    assert ({1: "a", 2: "b"}, ["no", "z"]) == (back.names["user"], back.extra["note"].tolist())
    assert {"user": 1, "status ": 1, "note": 1} == {
        field: n for (field, _), n in lost.counts.items()
    }


def test_two_quotes_that_are_never_closed() -> None:
    """Rows between two such quotes are not swallowed as one text: the table is refused."""
    rows = '0,1,"a\n1,1,x\n1,1,y\n2,1,"b\n3,1,z\n'
    with pytest.raises(ParseError, match="not a table row"):
        parse_csv(f"submit,run,note\n{rows}")


def test_a_number_with_two_names() -> None:
    """Of two names of a user the last stands, and the jobs that had the other are counted."""
    trace = parse_csv("submit,run,user,user_name\n0,1,1,a\n5,1,1,b\n")
    assert ({1: "b"}, [1]) == (trace.names["user"], list(trace.repaired.values()))
