"""Rows of sacct that names with delimiters and line ends break are put together again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hpcrowd.environment import FormatOptions, Trace, parse_sacct, read_trace
from hpcrowd.environment.traces.formats.slurm.mending import SURPLUS
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sacct import JOB, UTC, table, text

#: Columns of free text beside JobName.
MORE = ("Comment", "SubmitLine", "WorkDir", "AdminComment")

#: Names that break rows: no letter is lost or added.
NAMES = st.text("ab|\n |;x", min_size=1, max_size=12).map(str.strip).filter(bool)


def ordered(order: list[str], *rows: dict[str, str]) -> bytes:
    """Rows of jobs with columns in this order."""
    more = dict.fromkeys(order, "")
    filled = ([(more | JOB | row)[name] for name in order] for row in rows)
    return "".join("|".join(row) + "\n" for row in [order, *filled]).encode()


def names_of(trace: Trace) -> list[str]:
    """Names of the programs of jobs, by job."""
    names = trace.names.get("executable", {})
    return [names.get(number, str(number)) for number in trace["executable"].tolist()]


@pytest.mark.parametrize("name", ["a|b", "|", "a|b|c", "a\nb", "\n", "a\n\nb|", "line1\n|\nline3"])
def test_name_in_the_middle(name: str) -> None:
    """Surplus cells belong to the only column of free text."""
    good = parse_sacct(text({}, {"JobID": "2"}, {"JobID": "3"}), options=UTC)
    trace = parse_sacct(text({}, {"JobID": "2", "JobName": name}, {"JobID": "3"}), options=UTC)
    assert {SURPLUS: 1} == trace.repaired
    assert {} == trace.dropped
    assert name == names_of(trace)[1]
    fields = [column for column in good.columns if column != "executable"]
    assert all((good[one] == trace[one]).all() for one in fields)


@given(
    names=st.lists(NAMES, min_size=2, max_size=5),
    order=st.permutations(list(JOB)),
    last=st.booleans(),
)
def test_any_order_of_columns(names: list[str], order: list[str], last: bool) -> None:
    """The name is found wherever its column is: a row is whole, or is left out and counted."""
    order = [name for name in order if name != "JobName"]
    order.insert(len(order) if last else len(order) // 2, "JobName")
    rows = [{"JobID": str(number), "JobName": name} for number, name in enumerate(names, 10)]
    trace = parse_sacct(ordered(order, {}, *rows), options=UTC)
    ids = list(trace.extra["job_id"])
    whole = dict(zip(ids, names_of(trace), strict=True))
    assert whole.pop("1") == "relax"
    right = [name == names[int(one) - 10] for one, name in whole.items()]
    assert all(right) or trace.dropped
    assert bool(trace.dropped) >= (len(whole) < len(names))


@given(names=st.lists(NAMES, min_size=1, max_size=4), line=NAMES, comment=NAMES)
def test_several_columns_of_free_text(names: list[str], line: str, comment: str) -> None:
    """Known columns between two of free text part what belongs to each."""
    order = ["JobID", "User", "Account", "JobName", "Partition", "Submit", "Start", "End",
             "ElapsedRaw", "State", "AllocCPUS", "Comment", "SubmitLine"]  # fmt: skip
    rows = [{"JobID": str(number), "JobName": name, "Comment": comment, "SubmitLine": line}
            for number, name in enumerate(names, 10)]  # fmt: skip
    trace = parse_sacct(ordered(order, {"SubmitLine": "sbatch x"}, *rows), options=UTC)
    found = dict(zip(trace.extra["job_id"], names_of(trace), strict=True))
    for number, name in enumerate(names, 10):
        assert found[str(number)] == name


def test_ambiguous_row_is_left_out() -> None:
    """Two columns of free text side by side share a surplus in more than one way."""
    order = ["JobID", "Comment", "JobName", *(n for n in JOB if n not in ("JobID", "JobName"))]
    rows = [{"Comment": "x"}, {"JobID": "2", "JobName": "a|b", "Comment": "c"}, {"JobID": "3"}]
    trace = parse_sacct(ordered(order, *rows), options=UTC)
    assert ["1", "3"] == list(trace.extra["job_id"])
    assert {"cells that cannot be assigned to the columns (line 3)": 1} == trace.dropped


@pytest.mark.parametrize("delimiter", ["@@", "::", "|||", ";;"])
def test_delimiters_of_several_characters(delimiter: str) -> None:
    """``--delimiter`` takes any text."""
    rows = ({}, {"JobID": "2", "JobName": f"a{delimiter[0]}b"}, {"JobID": "3", "JobName": "x\ny"})
    trace = parse_sacct(text(*rows, delimiter=delimiter), options=UTC)
    assert table(parse_sacct(text({}), options=UTC))[0] == table(trace)[0]
    assert ["relax", f"a{delimiter[0]}b", "x\ny"] == names_of(trace)


#: Dumps of a real cluster, and the jobs that each has.
DUMPS = {
    "all-D-X.txt.gz": 409, "all-D.txt.gz": 409, "all-X.txt.gz": 409, "all.txt.gz": 409,
    "few.txt": 409, "guide-X-noD.txt": 409, "guide-X.txt": 409, "guide-allstates.txt": 414,
    "guide-delim2.txt": 409, "guide-noD.txt": 409, "guide-noconvert.txt": 409,
    "guide-nonames.txt": 409, "guide-p.txt": 409, "guide-paris.txt": 409,
    "guide-semicolon.txt": 409, "guide-states.txt": 414, "guide-tame.txt": 407,
    "guide-time-FTTz.txt": 409, "guide-time-s.txt": 409, "guide-time-standard.txt": 409,
    "guide-unitsG.txt": 409, "guide-unitsep.txt": 409, "guide.txt": 409, "lines.txt": 414,
    "tres.txt": 409,
}  # fmt: skip

#: Those that are refused, and why.
REFUSED = {
    "default.txt": "no column Submit",
    "guide-noheader.txt": "no header with the names of its columns; write it again without -n",
    "guide-wide.txt": "columns of fixed width, which cut values off; write it again with -P",
    "guide-time-adbHM.txt": "leave SLURM_TIME_FORMAT alone",
    "guide-time-relative.txt": "leave SLURM_TIME_FORMAT alone",
}


@pytest.mark.parametrize("name", DUMPS)
def test_dumps_of_a_real_cluster(slurm_dumps: Path, name: str) -> None:
    """Every dump has all jobs; those with a delimiter or line end in their name keep it."""
    trace = read_trace(slurm_dumps / name, options=FormatOptions(zone="UTC"))
    assert DUMPS[name] == len(trace)
    assert not any("assigned" in reason for reason in trace.dropped)
    if "executable" in trace.names and "tame" not in name:
        found = dict(zip(trace.extra["job_id"], names_of(trace), strict=True))
        assert ("a|b", "line1\nline2", "tab\there") == (found["291"], found["293"], found["296"])


@pytest.mark.parametrize("name", REFUSED)
def test_dumps_that_cannot_be_read(slurm_dumps: Path, name: str) -> None:
    """What is cut off or left out is refused with the reason and the cure."""
    with pytest.raises(Exception, match=REFUSED[name]) as caught:
        read_trace(slurm_dumps / name)
    assert "\n" not in str(caught.value)


def test_large_table_with_a_few_broken_rows(slurm_dumps: Path) -> None:
    """A row broken in a file of many pieces is repaired as in a small one."""
    head, *rows = gzip.decompress((slurm_dumps / "all-D-X.txt.gz").read_bytes()).split(b"\n")
    data = head + b"\n" + b"\n".join(rows) * 20
    assert {SURPLUS: 40} == {
        reason: count for reason, count in parse_sacct(data, options=UTC).repaired.items()
        if reason == SURPLUS
    }  # fmt: skip
