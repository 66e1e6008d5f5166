"""Tables in Parquet, and the maps of published tables that come with hpcrowd."""

import gzip
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpcrowd.environment.traces.formats.registry import parse_format, read_trace
from hpcrowd.environment.traces.formats.tables import parquet
from hpcrowd.environment.traces.formats.tables.ready import READY, map_path, map_titles
from hpcrowd.errors import QuantityError, TraceError
from hpcrowd.formats import FormatOptions, TableMapping, read_mapping

from tests.environment.traces.formats.format_cases import differences, shown

TABLE = parse_format("table")


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
ROWS = pa.table({
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
TEXT = """\
id,at,from,took,limit,cpu,cores,mem,who,group,ok,where,embedding
7,2021-03-31 15:00:00.123+00:00,2021-03-31 15:00:02.123,0 days 00:01:30.5,3600.0,0.123,4.0,1.50,zoe,1.0,True,"a,b",
8,2021-03-31 15:01:00.123+00:00,NaT,NaT,nan,1.5,1024.0,2.00,,,False,,
9,,,1 days 00:00:00,,,,,amy,12.0,,c,
"""  # noqa: E501
COLUMNS = {
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
    monkeypatch.setattr(parquet, "BATCH", 2)
    options = told(COLUMNS, zone="UTC")
    expected = TABLE.parse(TEXT, "mine.csv", options)
    path = tmp_path / "mine.parquet"
    path.write_bytes(packed(ROWS, **how))
    (tmp_path / "mine.gz").write_bytes(gzip.compress(path.read_bytes()))
    traces = [TABLE.read(file, options) for file in (path, tmp_path / "mine.gz")]
    for trace in (*traces, TABLE.parse(path.read_bytes(), options=options)):
        assert {} == differences(expected, trace)
        assert expected.header.lines == trace.header.lines
        assert {1: "zoe", 2: "amy"} == trace.names["user"]
    assert [(0.123, 2, 90.5, 0.123, 1), (60.123, -1, -1, 1.5, 0), (-1, -1, 86400, -1, -1)] == shown(
        trace, "submit", "wait", "run", "average_cpu", "status"
    )
    assert [64, 64] == [len(trace.sha256) for trace in traces]


def test_other_columns_are_not_unpacked(monkeypatch):
    """Only what the mapping names is read: embeddings are most of some tables."""
    data = packed(ROWS)
    read = parquet.ParquetTable(pa.BufferReader(data), "x", {"id", "who"})
    assert (["id", "who"], list(ROWS.column_names)) == (list(read.columns), read.names)
    monkeypatch.setattr("hpcrowd.environment.limits.inputs.free_memory", lambda: 1)
    monkeypatch.setattr("hpcrowd.environment.limits.inputs.SMALL", 40)
    with pytest.raises(TraceError, match="more than fits into the free memory"):
        TABLE.parse(data, options=told(COLUMNS))


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
        TABLE.parse(packed(ROWS), "mine.parquet", told(columns))
    assert str(caught.value).startswith("mine.parquet")


def test_dates_and_text_in_parquet():
    """Dates are midnights of the map's zone; text is read with the marks of the map."""
    table = pa.table({
        "at": pa.array([date(2024, 1, 8), None]), "took": pa.array(["60", "NA"], pa.large_string()),
        "run": pa.array([None, None]),
    })  # fmt: skip
    columns = {"submit": {"column": "at", "time": "iso"}, "run": "took", "wait": "run"}
    trace = TABLE.parse(packed(table), options=told(columns, zone="Europe/Stockholm"))
    assert 1704668400 == trace.header.integer("UnixStartTime")
    assert [(0, 60, -1), (-1, -1, -1)] == shown(trace, "submit", "run", "wait")
    marks = {"delimiter": ";", "decimal": ",", "thousands": "."}
    options = told({"submit": "at", "run": "took"}, **marks)
    text = packed(pa.table({"at": [0], "took": ["1.024,5"]}))
    assert [1024.5] == TABLE.parse(text, options=options)["run"].tolist()


NOON = datetime(2020, 5, 3, 12, tzinfo=UTC)


def seconds(*after):
    """Moments so many seconds after noon."""
    return [None if one is None else NOON + timedelta(seconds=one) for one in after]


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
        pd.DataFrame({
            "job_id": [10, 11], "submit_time": seconds(0, 60), "start_time": seconds(4, None),
            "end_time": seconds(3604, None), "run_time": [3600.0, None],
            "time_limit": [1440.0, None], "num_cores_alloc": [128.0, None],
            "num_cores_req": [128, 4], "num_nodes_req": [1.0, None], "user_id": [7, 8],
            "partition": ["1", "2"], "job_state": ["COMPLETED", "CANCELLED"],
            "power_consumption": [[1.0, 2.0], []],
        }),
        [(0, 4, 3600, 128, 1), (60, -1, -1, -1, 5)],
    ),
    "f-data": (
        pd.DataFrame({
            "jid": ["jid_1", "jid_2"], "usr": ["usr_1", "usr_2"], "jnam": ["jnam_1", "jnam_1"],
            "adt": ["2021-03-31 15:00:00.123+09", "2021-03-31 15:00:05+09"],
            "sdt": ["2021-03-31 15:00:02.5+09", None], "edt": ["2021-03-31 15:10:02+09", None],
            "cnumr": [96, 48], "cnumat": [96, 48], "nnumr": [2, 1], "elpl": [3600.0, 7200.0],
            "econ": [1.5, None], "exit state": ["completed", "failed"],
            "embedding": [[0.1, 0.2], [0.3, 0.4]],
        }),
        [(0.123, 2.377, 599.5, 96, 1), (5, -1, -1, 48, 0)],
    ),
    "opendc": (
        pd.DataFrame({
            "id": np.array([1, 2], np.int32), "submission_time": [1588507200000, 1588507260500],
            "duration": [90000, 1500], "cpu_count": [4, 8], "cpu_capacity": [2400.0, 2400.0],
            "mem_capacity": [4096, 1024],
        }),
        [(0, -1, 90, 4, -1), (60.5, -1, 1.5, 8, -1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READY)
def test_maps_of_published_tables(name, tmp_path):
    """Each map that comes with hpcrowd reads a table of its shape, with no complaint."""
    table, expected = PUBLISHED[name]
    path = tmp_path / "table"
    if isinstance(table, str):
        path.write_text(table)
    else:
        table.to_parquet(path)
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
