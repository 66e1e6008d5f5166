"""CSV and Parquet with our columns, what jobs in tables ask of a machine, and jobs of a run."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpcrowd.analysis.tables import read_jobs, write_jobs
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.machine.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.registry import FORMATS, read_trace
from hpcrowd.environment.traces.request_columns import request_columns
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS, requests_of
from hpcrowd.environment.traces.trace import FIELDS, MEANING
from hpcrowd.errors import TraceError
from hpcrowd.formats import (
    FormatOptions,
    Losses,
    TableMapping,
    generate_csv,
    generate_mapped,
    parse_csv,
    parse_mapped,
    parse_parquet,
)

from tests.environment.traces.formats.format_cases import (
    ASKED,
    asked_by,
    complaint,
    found_in,
    shown,
)


def parquet_of(**columns):
    """A Parquet file as pandas writes it."""
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


def test_what_is_missing_is_unknown():
    """A table of two columns is a trace, numbered as it stands; blanks, quotes and CRLF are CSV."""
    trace = parse_csv("run,submit\n60,5\n,6\n")
    assert [[5, 6], [60, -1], [1, 2]] == [trace[n].tolist() for n in ("submit", "run", "number")]
    for name in set(FIELDS) - {"submit", "run", "number"}:
        assert [-1, -1] == trace[name].tolist()
    trace = parse_csv(b'\xef\xbb\xbfsubmit, run ,"user_name"\r\n 5 ,"60","O""Neil, J."\r\n')
    assert [(5, 60, 'O"Neil, J.')] == shown(trace, "submit", "run", "user")


def test_names_next_to_numbers():
    """Names are those of the numbers next to them; without numbers they get some."""
    trace = parse_csv("submit,run,user,user_name,group_name\n0,1,7,eve,x\n0,1,-1,,y\n0,1,8,,x\n")
    assert {"user": {7: "eve"}, "group": {1: "x", 2: "y"}} == trace.names
    assert [1, 2, 1] == trace["group"].tolist()
    twice = parse_csv("submit,run,user,user_name\n0,1,1,a\n5,1,1,b\n")  # the last stands
    assert ({1: "b"}, [1]) == (twice.names["user"], list(twice.repaired.values()))


def test_table_of_jobs_of_a_run():
    """The columns of jobs.parquet are understood: start, end, processors, state."""
    text = "number,submit,start,end,processors,state,recorded_submit\n3,5,7,10,4,killed,0\n"
    trace = parse_csv(text + "4,6,-1,-1,9,rejected,0\n5,-1,50,51,1,done,0\n")
    assert [(2, 3, 4, 0), (-1, -1, 9, 5), (-1, 1, 1, -1)] == shown(
        trace, "wait", "run", "requested_processors", "status"
    )
    assert {} == trace.extra


def test_parquet_of_a_data_frame():
    """What pandas writes is read: missing values are unknown; odd numbers name their row."""
    columns: dict[str, list[object]] = {"submit": [0, 5], "run": [1.0, None]}
    trace = parse_parquet(parquet_of(**columns, user_name=["eve", None]))
    assert [(1, "eve"), (-1, -1)] == shown(trace, "run", "user")
    with pytest.raises(TraceError, match="column status holds bool, not numbers"):
        parse_parquet(parquet_of(**columns, status=[True, False]))
    for value in (np.inf, 2.0**60, -(2.0**54)):
        error = complaint(parse_parquet, parquet_of(submit=[0, 5], run=[1.0, value]))
        assert (2, "run") == (error.line, error.field)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("submit,submit,run\n0,1,2\n", ("'submit'", "twice")),
        ("a,b\n0,1\n", ("no columns submit and run", "'a', 'b'", "--map")),
        ('submit,run\n0,"1\n', ("line 2",)),
        ("submit,run\n0,1,2\n", ("line 2", "3 values; the first line names 2 columns")),
        ("submit,run\n0\n", ("line 2", "1 values; the first line names 2 columns")),
        ("submit,run\n0,x\n", ("line 2, field run", "'x'", "not a number")),
        ("submit,run\n0,1\0\n", ("line 2", "zero byte")),
        ('submit,run,note\n0,1,"a\n1,1,x\n1,1,y\n2,1,"b\n3,1,z\n', ("not a table row",)),
    ],
)
def test_what_is_not_a_table(text, parts):
    """What is wrong with a table is one line with its place."""
    with pytest.raises(TraceError) as caught:
        parse_csv(text, "bad.csv")
    for part in ("bad.csv", *parts):
        assert part in str(caught.value)


def asking():
    """Return three jobs that ask for everything there is."""
    trace = parse_csv("number,submit,run,requested_processors\n1,0,60,32\n2,10,60,4\n3,20,60,1\n")
    trace.extra = {name: np.array(texts, np.object_) for name, texts in ASKED.items()}
    return trace


def test_names_that_csv_cannot_hold():
    """A column whose name ends with a blank is lost, and counted."""
    trace, lost = asking(), Losses()
    trace.extra = {"status ": np.array(["x", "", "y"], np.object_)}
    assert {} == parse_csv(generate_csv(trace, lost)).extra
    assert {("status ", "the first line cannot hold this name"): 2} == lost.counts


def test_columns_become_requests():
    """Each column is a request of the machine, and documented; a begin counts from submission."""
    assert set(REQUEST_COLUMNS.values()) == set(ASKED)
    assert set(ASKED) - set(SITE_COLUMNS) == {"array", "task"}
    expected = {
        ask: ASKED[name] if ask in WORDS else [int(text or UNKNOWN) for text in ASKED[name]]
        for ask, name in REQUEST_COLUMNS.items()
        if ask != Ask.EXCLUSIVE
    } | {Ask.EXCLUSIVE: [1, UNKNOWN, UNKNOWN], Ask.BEGIN: [120, 70, UNKNOWN]}
    found = asked_by(asking())
    assert expected == {ask: found[ask] for ask in expected}


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_what_is_kept_beyond_the_fields(name):
    """All requests and other columns come back; Parquet keeps header, comments and line ends."""
    trace, lost, kind = asking(), Losses(), FORMATS[name]
    trace.extra["site"] = np.array(["north", "", "south"], np.object_)
    if name == "parquet":
        trace.header = Header([b"; MaxProcs: 4", b"; Note: caf\xe9"])
        trace.comments, trace.newline = [(1, b"; outage \xff")], b"\r\n"
    again = kind.parse(data := kind.generate(trace, lost, FormatOptions()))
    assert not lost
    columns = {name: texts.tolist() for name, texts in again.extra.items()}
    assert ASKED | {"site": ["north", "", "south"]} == columns
    assert asked_by(trace) == asked_by(again)
    assert trace.header.lines == again.header.lines
    assert (trace.comments, trace.newline) == (again.comments, again.newline)
    if name == "parquet":  # which shows what columns mean
        schema, meaning = pq.read_schema(io.BytesIO(data)), MEANING | SITE_COLUMNS
        for column in set(FIELDS) | (set(ASKED) & set(SITE_COLUMNS)):
            assert meaning[column] == schema.field(column).metadata[b"meaning"].decode()


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("submit,run,gpus_per_node,exclusive,memory_per_node,no_requeue\n"
         "0,1,2.0,True,1.5,no\n0,1,,False,,yes\n0,1,-1,no,2,\n",
         {Ask.GPUS_PER_NODE: [2, UNKNOWN, UNKNOWN], Ask.EXCLUSIVE: [1, UNKNOWN, UNKNOWN],
          Ask.MEMORY_PER_NODE: [2, UNKNOWN, 2], Ask.NO_REQUEUE: [UNKNOWN, 1, UNKNOWN]}),
        ("submit,run,requested_memory,asked_nodes,memory_per_node\n0,1,1500,1,\n0,1,1500,1,64\n",
         {Ask.MEMORY_PER_CORE: [2, UNKNOWN], Ask.MEMORY_PER_NODE: [UNKNOWN, 64]}),
    ],
)  # fmt: skip
def test_numbers_of_other_programs(table, expected):
    """Fractions are rounded up, words say yes and no; what is no number is refused."""
    found = asked_by(parse_csv(table))
    assert expected == {ask: found[ask] for ask in expected}
    for text in ("two", "-3", "1e3", "9" * 18):
        trace = parse_csv(f"number,submit,run,gpus\n5,0,1,1\n6,0,1,{text}\n", "mine.csv")
        with pytest.raises(TraceError, match=f"mine.csv: gpus '{text}' of job 6 .*leave it empty"):
            requests_of(trace, np.arange(2))


#: A mapping with units of memory and words, and a table that it describes.
MINE = TableMapping(
    columns={
        "submit": "at", "run": "took", "memory_per_node": {"column": "mem", "unit": "GB"},
        "memory_per_core": {"column": "core mem"}, "gpus_per_node": "gpus", "partitions": "where",
        "exclusive": {"column": "alone", "values": {"Y": 1, "N": 0}},
    }
)  # fmt: skip
TABLE = """\
at,took,mem,core mem,gpus,where,alone
0,60,1.5,,2,"short,long",Y
5,60,,500,,gpu,N
"""


def test_a_table_of_ones_own():
    """A mapping names columns of requests as it names fields, with units of memory and words."""
    told, lost = FormatOptions(mapping=MINE), Losses()
    trace = parse_mapped(TABLE, "mine.csv", told)
    found = asked_by(trace)
    expected = {
        Ask.MEMORY_PER_NODE: [1536, UNKNOWN], Ask.MEMORY_PER_CORE: [UNKNOWN, 500],
        Ask.GPUS_PER_NODE: [2, UNKNOWN], Ask.EXCLUSIVE: [1, 0],
        Ask.PARTITIONS: ["short,long", "gpu"],
    }  # fmt: skip
    assert expected == {ask: found[ask] for ask in expected}
    assert found == asked_by(parse_mapped(generate_mapped(trace, lost, told), "mine.csv", told))
    assert not {name for name, _ in lost.counts} & set(ASKED)


def run_of(requests):
    """Return the jobs of a run that ask for something."""
    jobs = JobTable()
    jobs.append(
        len(requests), number=np.arange(1, len(requests) + 1), processors=4, run_time=60,
        recorded_submit=0, submit=10 * np.arange(len(requests)),
    )  # fmt: skip
    jobs.requests = requests
    return jobs


def test_jobs_of_a_run_keep_what_they_ask_for(tmp_path):
    """jobs.parquet has a column for what some job asks for; as a trace it asks for the same."""
    trace, path = asking(), tmp_path / "jobs.parquet"
    requests = requests_of(trace, np.arange(3))
    assert requests is not None
    write_jobs(run_of(requests), path)
    assert asked_by(trace) == found_in(read_jobs(path).requests)
    columns = request_columns(requests, trace["submit"].astype(np.int64))  # one is the queue
    expected = ASKED | {"partitions": ["short,long", "", ""]}
    assert expected == {name: texts.tolist() for name, texts in columns.items()}
    as_trace = read_trace(path)
    assert ["yes", "", ""] == as_trace.extra["exclusive"].tolist()
    assert asked_by(trace) == asked_by(as_trace)
    write_jobs(run_of(Requests(2)), path)
    assert read_jobs(path).requests is None
    table = pq.read_table(path)  # a column with texts instead of numbers is refused by name
    pq.write_table(table.append_column("gpus", pa.array(["two", "1"])), path)
    with pytest.raises(ResultsError, match="column gpus: string instead of whole numbers"):
        read_jobs(path)
