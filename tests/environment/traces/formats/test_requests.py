"""What jobs ask of a machine in tables: CSV, Parquet, your own table, and the jobs of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.tables import read_jobs, write_jobs
from hpcrowd.environment import (
    FormatOptions,
    Losses,
    TableMapping,
    generate_csv,
    generate_mapped,
    generate_parquet,
    generate_swf,
    parse_csv,
    parse_mapped,
    parse_parquet,
)
from hpcrowd.environment.errors import QuantityError, ResultsError, TraceError
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.machine.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.formats.common.site_columns import SITE_COLUMNS
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.request_columns import request_columns
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS, requests_of
from hpcrowd.environment.traces.trace import Trace

#: What three jobs may ask for, by column; only the first submits at 0.
ASKED = {
    "asked_nodes": ["2", "", "1"], "asked_max_nodes": ["4", "", "1"], "tasks": ["16", "1", ""],
    "tasks_per_node": ["8", "", ""], "cores_per_task": ["2", "4", ""],
    "memory_per_node": ["4096", "0", ""], "memory_per_core": ["", "", "500"],
    "gpus": ["", "3", ""], "gpus_per_node": ["2", "", ""], "gpus_per_task": ["", "", "1"],
    "gpu_type": ["a100", "", "h100"], "constraints": ["a&b", "a|b", ""],
    "exclusive": ["yes", "", ""], "partitions": ["short,long", "", "gpu"],
    "reservation": ["", "night", ""], "qos": ["high", "low", ""], "project": ["lab", "", "lab"],
    "nice": ["100", "-5", ""], "array": ["", "7", "7"], "task": ["", "0", "1"],
    "throttle": ["", "4", "4"], "no_requeue": ["1", "", ""], "begin": ["120", "60", ""],
}  # fmt: skip


def asking() -> Trace:
    """Return three jobs that ask for everything there is."""
    trace = parse_csv("number,submit,run,requested_processors\n1,0,60,32\n2,10,60,4\n3,20,60,1\n")
    trace.extra = {name: np.array(texts, np.object_) for name, texts in ASKED.items()}
    return trace


def found_in(trace: Trace) -> dict[Ask, list[int] | list[str]]:
    """Return what the jobs of a trace ask for."""
    requests = requests_of(trace, np.arange(len(trace)))
    assert requests is not None
    return {ask: requests.texts(ask) if ask in WORDS else requests[ask].tolist() for ask in Ask}


def test_every_request_has_a_column_that_is_documented() -> None:
    """All that jobs can ask for has a column; arrays and tasks follow from identifiers, too."""
    assert set(REQUEST_COLUMNS.values()) == set(ASKED)
    assert set(ASKED) - set(SITE_COLUMNS) == {"array", "task"}


def test_columns_become_requests() -> None:
    """Each column is a request of the machine; a begin counts from the submission."""
    found = found_in(asking())
    expected = {
        ask: ASKED[name] if ask in WORDS else [int(text or UNKNOWN) for text in ASKED[name]]
        for ask, name in REQUEST_COLUMNS.items()
        if ask not in (Ask.EXCLUSIVE, Ask.BEGIN)
    }
    assert expected == {ask: found[ask] for ask in expected}
    assert [1, UNKNOWN, UNKNOWN] == found[Ask.EXCLUSIVE]
    assert [120, 70, UNKNOWN] == found[Ask.BEGIN]


@pytest.mark.parametrize(
    ("generate", "parse"), [(generate_csv, parse_csv), (generate_parquet, parse_parquet)],
    ids=["csv", "parquet"],
)  # fmt: skip
def test_tables_are_read_back_as_they_were(generate: object, parse: object) -> None:
    """CSV and Parquet hold every request, and nothing of it is lost."""
    assert callable(generate)
    assert callable(parse)
    trace, lost = asking(), Losses()
    again = parse(generate(trace, lost))
    assert ASKED == {name: texts.tolist() for name, texts in again.extra.items()}
    assert found_in(trace) == found_in(again)
    assert not {name for name, _ in lost.counts} & set(ASKED)


def test_requests_become_the_columns_that_they_were() -> None:
    """Requests that were read are written as the same columns; one partition is the queue."""
    trace = asking()
    requests = requests_of(trace, np.arange(3))
    assert requests is not None
    columns = request_columns(requests, trace["submit"].astype(np.int64))
    expected = ASKED | {"partitions": ["short,long", "", ""]}
    assert expected == {name: texts.tolist() for name, texts in columns.items()}


def test_parquet_shows_what_requests_mean() -> None:
    """Their columns have their meanings in their metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(pa.BufferReader(generate_parquet(asking())))
    for name in set(ASKED) & set(SITE_COLUMNS):
        assert SITE_COLUMNS[name] == schema.field(name).metadata[b"meaning"].decode()


def test_numbers_of_other_programs() -> None:
    """Fractions are rounded up, as pandas writes whole numbers with gaps; words say yes and no."""
    trace = parse_csv(
        "submit,run,gpus_per_node,exclusive,memory_per_node,no_requeue\n"
        "0,1,2.0,True,1.5,no\n0,1,,False,,yes\n0,1,-1,no,2,\n"
    )
    found = found_in(trace)
    assert [2, UNKNOWN, UNKNOWN] == found[Ask.GPUS_PER_NODE]
    assert [1, UNKNOWN, UNKNOWN] == found[Ask.EXCLUSIVE]
    assert [2, UNKNOWN, 2] == found[Ask.MEMORY_PER_NODE]
    assert [UNKNOWN, 1, UNKNOWN] == found[Ask.NO_REQUEUE]


@pytest.mark.parametrize("text", ["two", "-3", "1e3", "9" * 18])
def test_what_is_no_number_is_refused(text: str) -> None:
    """The message has the column, the text, the job and a cure."""
    trace = parse_csv(f"number,submit,run,gpus\n5,0,1,1\n6,0,1,{text}\n", "mine.csv")
    with pytest.raises(TraceError, match=f"mine.csv: gpus '{text}' of job 6 .*leave it empty"):
        requests_of(trace, np.arange(2))


def test_memory_per_processor_where_nothing_else_says_it() -> None:
    """The field of a trace counts as memory per core, rounded up; a column counts more."""
    trace = parse_csv(
        "submit,run,requested_memory,asked_nodes,memory_per_node\n0,1,1500,1,\n0,1,1500,1,64\n"
    )
    found = found_in(trace)
    assert [2, UNKNOWN] == found[Ask.MEMORY_PER_CORE]
    assert [UNKNOWN, 64] == found[Ask.MEMORY_PER_NODE]


MINE = TableMapping(
    columns={
        "submit": "at", "run": "took", "memory_per_node": {"column": "mem", "unit": "GB"},
        "memory_per_core": {"column": "core mem"}, "gpus_per_node": "gpus",
        "gpu_type": "card", "constraints": "kind", "asked_nodes": "nodes", "partitions": "where",
        "exclusive": {"column": "alone", "values": {"Y": 1, "N": 0}},
    }
)  # fmt: skip

TABLE = """\
at,took,mem,core mem,gpus,card,kind,nodes,where,alone
0,60,1.5,,2,a100,a&b,2,"short,long",Y
5,60,,500,,,,,gpu,N
"""


def test_a_table_of_ones_own() -> None:
    """A mapping names columns of requests as it names fields, with units of memory and words."""
    told = FormatOptions(mapping=MINE)
    trace = parse_mapped(TABLE, "mine.csv", told)
    found = found_in(trace)
    assert [1536, UNKNOWN] == found[Ask.MEMORY_PER_NODE]
    assert [UNKNOWN, 500] == found[Ask.MEMORY_PER_CORE]
    assert [2, UNKNOWN] == found[Ask.GPUS_PER_NODE] == found[Ask.NODES]
    assert [1, 0] == found[Ask.EXCLUSIVE]
    texts = {Ask.GPU_TYPE: ["a100", ""], Ask.FEATURES: ["a&b", ""],
             Ask.PARTITIONS: ["short,long", "gpu"]}  # fmt: skip
    assert texts == {ask: found[ask] for ask in texts}

    lost = Losses()
    again = parse_mapped(generate_mapped(trace, lost, told), "mine.csv", told)
    assert found == found_in(again)
    assert not {name for name, _ in lost.counts} & set(ASKED)


def test_what_a_mapping_lacks_is_counted() -> None:
    """Requests without a column are lost, and so is what its words cannot say."""
    told, lost = FormatOptions(mapping=MINE), Losses()
    trace = asking()
    trace.extra["exclusive"] = np.array(["1", "0", "7"], np.object_)
    generate_mapped(trace, lost, told)
    counted = {name: count for (name, _), count in lost.counts.items() if name in ASKED}
    assert set(ASKED) - set(MINE.columns) | {"exclusive"} == set(counted)
    assert (3, 2) == (counted["throttle"] + 1, counted["tasks"])
    assert 1 == counted["exclusive"]


@pytest.mark.parametrize(
    "column",
    [{"gpus": {"column": "x", "unit": "GB"}}, {"memory_per_core": {"column": "x", "unit": "h"}},
     {"gpus_per_rack": "x"}],
)  # fmt: skip
def test_mistakes_of_a_mapping(column: dict[str, object]) -> None:
    """Units that a request does not have, and requests that there are not, are refused."""
    with pytest.raises((QuantityError, ValueError), match=r"gpus|memory_per_core"):
        TableMapping(columns={"submit": "at", "run": "took", **column})


def test_the_standard_workload_format_holds_no_layout() -> None:
    """It has processors, time and memory; each request is counted as lost, and reads as none."""
    lost = Losses()
    again = generate_swf(asking(), lost)
    counted = {name: count for (name, _), count in lost.counts.items()}
    for name, texts in ASKED.items():
        assert counted[name] == sum(map(bool, texts)), name
    assert b" 32 " in again


def run_of(requests: Requests) -> JobTable:
    """Return the jobs of a run that ask for something."""
    jobs = JobTable()
    jobs.append(
        len(requests), number=np.arange(1, len(requests) + 1), processors=4, run_time=60,
        recorded_submit=0, submit=10 * np.arange(len(requests)),
    )  # fmt: skip
    jobs.requests = requests
    return jobs


def test_jobs_of_a_run_keep_what_they_ask_for(tmp_path: Path) -> None:
    """jobs.parquet has a column for what some job asks for; read back, the requests are the same.

    As a trace it asks for the same, too.
    """
    trace = asking()
    requests = requests_of(trace, np.arange(3))
    assert requests is not None
    path = tmp_path / "jobs.parquet"
    write_jobs(run_of(requests), path)
    again = read_jobs(path).requests
    assert again is not None
    assert requests.asked() == again.asked()
    for ask in Ask:
        if ask in WORDS:
            assert requests.texts(ask) == again.texts(ask)
        else:
            assert requests[ask].tolist() == again[ask].tolist()
    as_trace = read_trace(path)
    assert ["yes", "", ""] == as_trace.extra["exclusive"].tolist()
    assert found_in(trace) == found_in(as_trace)


def test_jobs_that_ask_for_nothing_have_no_columns(tmp_path: Path) -> None:
    """The table of a run on equal processors is as it was."""
    import pyarrow.parquet as pq

    jobs, path = run_of(Requests(2)), tmp_path / "jobs.parquet"
    write_jobs(jobs, path)
    assert not {ask.name.lower() for ask in Ask} & set(pq.read_schema(path).names)
    assert read_jobs(path).requests is None


def test_damaged_requests_of_a_run(tmp_path: Path) -> None:
    """A column of requests with texts instead of numbers is refused by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "jobs.parquet"
    write_jobs(run_of(Requests(2)), path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("gpus", pa.array(["two", "1"])), path)
    with pytest.raises(ResultsError, match="column gpus: string instead of whole numbers"):
        read_jobs(path)
