"""CSV and Parquet, what jobs in tables ask for, jobs of a run, and maps of published tables."""

import gzip
import io
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpcrowd.analysis.results import read_jobs, write_jobs
from hpcrowd.environment.errors import QuantityError, ResultsError, TraceError
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.registry import (
    FORMATS,
    READY,
    map_path,
    map_titles,
    read_trace,
)
from hpcrowd.environment.traces.formats.tables import text as tables
from hpcrowd.environment.traces.formats.tables.mapping import read_mapping
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS, request_columns, requests_of
from hpcrowd.environment.traces.trace import FIELDS, MEANING
from hpcrowd.formats import FormatOptions, Losses, TableMapping, parse_csv, parse_parquet

from tests.environment.traces.formats import format_cases as cases
from tests.environment.traces.formats.format_cases import ASKED, asked_by, differences, shown


def parquet_of(**columns):
    """A Parquet file as pandas writes it."""
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # two columns are enough; jobs are numbered as they stand
        ("run,submit\n60,5\n,6\n", {name: [-1, -1] for name in FIELDS}
         | {"submit": [5, 6], "run": [60, -1], "number": [1, 2]}),
        # blanks, quotes, a mark and line ends as of windows are CSV
        ('\ufeffsubmit, run ,"user_name"\r\n 5 ,"60","O""Neil, J."\r\n',
         {"submit": [5], "run": [60], "user": ['O"Neil, J.']}),
        # names are those of the numbers next to them; without numbers they get some
        ("submit,run,user,user_name,group_name\n0,1,7,eve,x\n0,1,-1,,y\n0,1,8,,x\n",
         {"user": ["eve", -1, 8], "group": ["x", "y", "x"]}),
        # the columns of jobs.parquet are understood: start, end, processors, state
        ("number,submit,start,end,processors,state,recorded_submit\n3,5,7,10,4,killed,0\n"
         "4,6,-1,-1,9,rejected,0\n5,-1,50,51,1,done,0\n",
         {"wait": [2, -1, -1], "run": [3, -1, 1], "requested_processors": [4, 9, 1],
          "status": [0, 5, -1]}),
    ],
)  # fmt: skip
def test_fields_of_a_table(text, expected):
    """What is missing is unknown."""
    trace = parse_csv(text)
    assert expected == {name: [value for (value,) in shown(trace, name)] for name in expected}
    assert {} == trace.extra


def test_two_names_of_a_number():
    """The last one stands, which is counted."""
    trace = parse_csv("submit,run,user,user_name\n0,1,1,a\n5,1,1,b\n")
    assert ({1: "b"}, [1]) == (trace.names["user"], list(trace.repaired.values()))


def test_parquet_of_a_data_frame():
    """What pandas writes is read: missing values are unknown; odd numbers name their row."""
    columns: dict[str, list[object]] = {"submit": [0, 5], "run": [1.0, None]}
    trace = parse_parquet(parquet_of(**columns, user_name=["eve", None]))
    assert [(1, "eve"), (-1, -1)] == shown(trace, "run", "user")
    with pytest.raises(TraceError, match="column status holds bool, not numbers"):
        parse_parquet(parquet_of(**columns, status=[True, False]))
    for value in (np.inf, 2.0**60, -(2.0**54)):
        error = cases.complaint(parse_parquet, parquet_of(submit=[0, 5], run=[1.0, value]))
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
    assert {} == parse_csv(FORMATS["csv"].generate(trace, lost, FormatOptions())).extra
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
    told, lost, kind = FormatOptions(mapping=MINE), Losses(), FORMATS["table"]
    trace = kind.parse(TABLE, "mine.csv", told)
    found = asked_by(trace)
    expected = {
        Ask.MEMORY_PER_NODE: [1536, UNKNOWN], Ask.MEMORY_PER_CORE: [UNKNOWN, 500],
        Ask.GPUS_PER_NODE: [2, UNKNOWN], Ask.EXCLUSIVE: [1, 0],
        Ask.PARTITIONS: ["short,long", "gpu"],
    }  # fmt: skip
    assert expected == {ask: found[ask] for ask in expected}
    assert found == asked_by(kind.parse(kind.generate(trace, lost, told), "mine.csv", told))
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
    assert asked_by(trace) == cases.found_in(read_jobs(path).requests)
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


OF_MAPS = FORMATS["table"]


def packed(table, **how):
    """A table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def told(columns, **more):
    """A mapping as what reading needs to know."""
    return FormatOptions(mapping=TableMapping(columns=columns, **more))


BEGIN = datetime(2021, 3, 31, 15, 0, 0, 123000)

#: Columns of all kinds, and the same as text.
KINDS = pa.table({
    "id": pa.array([7, 8, 9], pa.uint64()),
    "at": pa.array([BEGIN, BEGIN + timedelta(minutes=1), None], pa.timestamp("ns", "UTC")),
    "from": pa.array([BEGIN + timedelta(seconds=2), None, None], pa.timestamp("ms")),
    "took": pa.array([timedelta(seconds=90.5), None, timedelta(days=1)], pa.duration("us")),
    "limit": pa.array([3600.0, np.nan, None]),
    "cpu": pa.array([0.123, 1.5, None], pa.float32()),
    "cores": pa.array([4.0, 1024.0, None]),
    "mem": pa.array([Decimal("1.50"), Decimal("2.00"), None]),
    "who": pa.array(["zoe", None, "amy"]).dictionary_encode(),
    "group": pa.array([1.0, None, 12.0]),
    "ok": pa.array([True, False, None]),
    "where": pa.array([["a", "b"], None, ["c"]]),
    "embedding": pa.array([[{"x": 1}], None, []]),
})  # fmt: skip
AS_TEXT = """\
id,at,from,took,limit,cpu,cores,mem,who,group,ok,where,embedding
7,2021-03-31 15:00:00.123+00:00,2021-03-31 15:00:02.123,0 days 00:01:30.5,3600.0,0.123,4.0,1.50,zoe,1.0,True,"a,b",
8,2021-03-31 15:01:00.123+00:00,NaT,NaT,nan,1.5,1024.0,2.00,,,False,,
9,,,1 days 00:00:00,,,,,amy,12.0,,c,
"""  # noqa: E501
MAPPED = {
    "number": "id", "submit": {"column": "at", "time": "iso"},
    "start": {"column": "from", "time": "iso"}, "run": {"column": "took", "unit": "clock"},
    "requested_time": {"column": "limit", "unit": "min"}, "average_cpu": "cpu",
    "allocated_processors": "cores", "requested_memory": {"column": "mem", "unit": "MB"},
    "user": "who", "group": "group", "status": {"column": "ok", "values": {"True": 1, "False": 0}},
    "partitions": "where",
}  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"row_group_size": 2}, {"use_dictionary": False}])
def test_parquet_is_read_as_the_same_table_in_text(how, monkeypatch, tmp_path):
    """All kinds of columns give the same trace as in text, also in many batches, from a file."""
    monkeypatch.setattr(tables, "BATCH", 2)
    options = told(MAPPED, zone="UTC")
    expected = OF_MAPS.parse(AS_TEXT, "mine.csv", options)
    path = tmp_path / "mine.parquet"
    path.write_bytes(packed(KINDS, **how))
    (tmp_path / "mine.gz").write_bytes(gzip.compress(path.read_bytes()))
    traces = [OF_MAPS.read(file, options) for file in (path, tmp_path / "mine.gz")]
    for trace in (*traces, OF_MAPS.parse(path.read_bytes(), options=options)):
        assert {} == differences(expected, trace)
        assert expected.header.lines == trace.header.lines
        assert {1: "zoe", 2: "amy"} == trace.names["user"]
    assert [(0.123, 2, 90.5, 0.123, 1), (60.123, -1, -1, 1.5, 0), (-1, -1, 86400, -1, -1)] == shown(
        trace, "submit", "wait", "run", "average_cpu", "status"
    )
    assert [64, 64] == [len(trace.sha256) for trace in traces]


def test_other_columns_are_not_unpacked(monkeypatch):
    """Only what the mapping names is read: embeddings are most of some tables."""
    data = packed(KINDS)
    read = tables.ParquetTable(pa.BufferReader(data), "x", {"id", "who"})
    assert (["id", "who"], list(KINDS.column_names)) == (list(read.columns), read.names)
    monkeypatch.setattr("hpcrowd.environment.limits.inputs.free_memory", lambda: 1)
    monkeypatch.setattr("hpcrowd.environment.limits.inputs.SMALL", 40)
    with pytest.raises(TraceError, match="more than fits into the free memory"):
        OF_MAPS.parse(data, options=told(MAPPED))


@pytest.mark.parametrize(
    ("columns", "words"),
    [({"submit": "at", "run": "limit"}, 'column at holds timestamp.* needs time = "iso"'),
     ({"submit": "id", "run": "at"}, "column at holds timestamp.*, not numbers"),
     ({"submit": "id", "run": "none"}, "no column 'none', which the mapping gives for run"),
     ({"submit": 1, "run": 2}, "columns in Parquet have names"),
     ({"submit": "id", "run": {"column": "who", "unit": "h"}}, "line 1, field who: 'zoe'")],
)  # fmt: skip
def test_what_a_mapping_gets_wrong_of_parquet(columns, words):
    """A column of another kind is refused in one line that names it."""
    with pytest.raises((TraceError, QuantityError), match=words) as caught:
        OF_MAPS.parse(packed(KINDS), "mine.parquet", told(columns))
    assert str(caught.value).startswith("mine.parquet")


def test_dates_and_text_in_parquet():
    """Dates are midnights of the map's zone; text is read with the marks of the map."""
    table = pa.table({
        "at": pa.array([date(2024, 1, 8), None]), "took": pa.array(["60", "NA"], pa.large_string()),
        "run": pa.array([None, None]),
    })  # fmt: skip
    columns = {"submit": {"column": "at", "time": "iso"}, "run": "took", "wait": "run"}
    trace = OF_MAPS.parse(packed(table), options=told(columns, zone="Europe/Stockholm"))
    assert 1704668400 == trace.header.integer("UnixStartTime")
    assert [(0, 60, -1), (-1, -1, -1)] == shown(trace, "submit", "run", "wait")
    marks = {"delimiter": ";", "decimal": ",", "thousands": "."}
    options = told({"submit": "at", "run": "took"}, **marks)
    text = packed(pa.table({"at": [0], "took": ["1.024,5"]}))
    assert [1024.5] == OF_MAPS.parse(text, options=options)["run"].tolist()


#: A small table in the shape of each published one, and submit, wait, run, processors, status.
PUBLISHED = {
    "alibaba-2018": (
        "M1,3,j_1,1,Terminated,86400,86500,100.00,0.39\nR2_1,2,j_1,1,Failed,86500,86560,50.00,0.2\n"
        "M1,1,j_2,12,Running,86600,0,50.00,0.2\n",
        [(86400, 0, 100, 3, 1), (86500, 0, 60, 2, 0), (86600, 0, -1, 1, -1)],
    ),
    "google-2011": (
        "time,job,user,cpus,end\n600000000,3418309,u1,4,660000000\n700000000,341,u2,2,760500000\n",
        [(600, 0, 60, 4, -1), (700, 0, 60.5, 2, -1)],
    ),
    "helios": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n1000,u1,v1,8,40,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:01:10,2020-04-01 "
        "02:01:10,7200,60\n1001,u2,v2,0,4,1,CANCELLED,2020-04-01 00:00:20,nan,2020-04-01 00:05:20,"
        "0,300\n",
        [(0, 60, 7200, 40, 1), (10, -1, -1, 4, 5)],
    ),
    "philly": (
        "jobid,vc,user,status,submitted_time,start_time,end_time,num_gpus\n"
        "application_1_7,ee9e8c,ce2f4c,Pass,2017-10-07 01:11:39,2017-10-07 01:12:09,2017-10-09 "
        "06:53:12,8\napplication_1_8,ee9e8c,a1b2c3,Killed,2017-10-07 01:11:49,None,None,0\n",
        [(0, 30, 193263, 8, 1), (10, -1, -1, 0, 5)],
    ),
    "pm100": (
        "job_id,submit_time,start_time,end_time,run_time,time_limit,num_cores_alloc,num_cores_req,"
        "num_nodes_req,user_id,partition,job_state,power_consumption\n"
        "10,2020-05-03 12:00+00:00,2020-05-03 12:00:04+00:00,2020-05-03 13:00:04+00:00,3600.0,"
        '1440.0,128.0,128,1.0,7,1,COMPLETED,"1,2"\n'
        "11,2020-05-03 12:01+00:00,,,,,,4,,8,2,CANCELLED,\n",
        [(0, 4, 3600, 128, 1), (60, -1, -1, -1, 5)],
    ),
    "f-data": (
        "jid,usr,jnam,adt,sdt,edt,cnumr,cnumat,nnumr,elpl,econ,exit state,embedding\n"
        "jid_1,usr_1,jnam_1,2021-03-31 15:00:00.123+09,2021-03-31 15:00:02.5+09,"
        '2021-03-31 15:10:02+09,96,96,2,3600.0,1.5,completed,"0.1,0.2"\n'
        "jid_2,usr_2,jnam_1,2021-03-31 15:00:05+09,,,48,48,1,7200.0,,failed,\n",
        [(0.123, 2.377, 599.5, 96, 1), (5, -1, -1, 48, 0)],
    ),
    "opendc": (
        "id,submission_time,duration,cpu_count,cpu_capacity,mem_capacity\n"
        "1,1588507200000,90000,4,2400.0,4096\n2,1588507260500,1500,8,2400.0,1024\n",
        [(0, -1, 90, 4, -1), (60.5, -1, 1.5, 8, -1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READY)
def test_maps_of_published_tables(name, tmp_path):
    """Each map that comes with hpcrowd reads a table of its shape, with no complaint."""
    table, expected = PUBLISHED[name]
    path = tmp_path / "table"
    path.write_text(table)
    options = FormatOptions(mapping=read_mapping(map_path(name)), format="table")
    trace = read_trace(path, options=options)
    fields = ("submit", "wait", "run", "allocated_processors", "status")
    assert expected == shown(trace, *fields)
    cut = {reason for reason in trace.repaired if not reason.startswith("ended before")}
    assert (set(), {}) == (cut, dict(trace.dropped))


def test_maps_are_listed_with_what_they_read(tmp_path):
    """Each has a title; a wrong name lists all of them, and a path with a suffix is a file."""
    assert set(PUBLISHED) == set(READY) == set(map_titles())
    assert all(len(title) > 10 and "#" not in title for title in map_titles().values())
    assert Path("a/mine.toml") == map_path("mine.toml", Path("a"))
    with pytest.raises(QuantityError, match=r"did you mean pm100.*alibaba-2018"):
        read_mapping(map_path("pm10", tmp_path))
