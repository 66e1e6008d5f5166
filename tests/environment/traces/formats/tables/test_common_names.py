"""Your own tables whose columns have common names."""

import pytest
from hpcrowd import HpcrowdError, read_trace

OWN = {
    "names and dates": (
        "JobID,User,Submit Time,Start,End,Cores\n"
        "1,ann,2024-01-08T08:00:00,2024-01-08T08:00:30,2024-01-08T09:00:30,4\n"
        "2,bob,2024-01-08T08:10:00,2024-01-08T08:10:00,2024-01-08T08:40:00,2\n"
    ),
    "seconds": "user,submit,start,end,cores\nann,0,30,3630,4\nbob,600,600,2400,2\n",
    "Unix times and clocks": (
        "username,Submitted_At,start_time,elapsed,n_cpus\n"
        "ann,1704700800,1704700830,01:00:00,4\nbob,1704701400,1704701400,00:30:00,2\n"
    ),
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_common_names_need_no_map(tmp_path, text):
    """Users with names, and times as seconds, Unix times or dates; a line says what was read."""
    (tmp_path / "own.csv").write_text(text)
    trace = read_trace(tmp_path / "own.csv")
    assert {1: "ann", 2: "bob"} == trace.names["user"]
    for field, values in (("submit", [0, 600]), ("wait", [30, 0]), ("run", [3600, 1800])):
        assert values == trace[field].tolist(), field
    assert [4, 2] == trace["allocated_processors"].tolist()
    assert trace.doubts[0].startswith("columns read by their names: ")


@pytest.mark.parametrize(
    "text",
    ["who,when,took\nann,0,60\n", "user,submit,run\nann,monday,60\n", "user,submit,run\nann,0,x\n"],
)
def test_other_tables_need_a_map(tmp_path, text):
    """What is not read by its names is one line that names the cure."""
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(HpcrowdError, match="--map FILE describes the columns of your own table"):
        read_trace(tmp_path / "own.csv")
