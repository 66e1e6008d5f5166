"""Jobs and workloads of Batsim are read, and written so that Batsim and evalys take them."""

import importlib.util
import json

import pytest
from hpcrowd import Trace, generate_swf, parse_swf, read_trace, write_trace
from hpcrowd.environment.traces.formats.batsim.jobs import COLUMNS, count_of, last_of
from hpcrowd.environment.traces.formats.batsim.workloads import run_times
from hpcrowd.environment.traces.formats.common.base import FormatOptions
from hpcrowd.errors import ParseError, TraceError
from hpcrowd.formats import generate_batsim, generate_batsim_jobs, parse_batsim, parse_batsim_jobs
from hypothesis import example, given
from hypothesis import strategies as st

from tests.environment.traces.formats.format_cases import shown
from tests.environment.traces.formats.format_samples import BATSIM, BATSIM_JOBS

SWF = """\
; MaxProcs: 8
1 0 5 60 4 -1 -1 4 90 -1 1 -1 -1 -1 -1 -1 -1 -1
2 0 5 60 3 -1 -1 3 60 -1 0 -1 -1 -1 -1 -1 -1 -1
3 1 64 10 6 -1 -1 6 90 -1 0 -1 -1 -1 -1 -1 -1 -1
4 2 3 1000 1 -1 -1 1 -1 -1 5 -1 -1 -1 -1 -1 -1 -1
5 3 -1 -1 -1 -1 -1 2 9 -1 5 -1 -1 -1 -1 -1 -1 -1
6 2000 0 9 2 -1 -1 2 9 -1 1 -1 -1 -1 -1 -1 -1 -1
7 2000 0 90 2 -1 -1 2 90 -1 1 -1 -1 -1 -1 -1 -1 -1
8 2009 1 9 6 -1 -1 6 9 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


def test_story():
    """Times, sizes, states and resources are where they belong, and are written as they were."""
    trace = parse_batsim_jobs(BATSIM_JOBS)
    assert [
        (5, 0, 5, 60, 4, 4, 90, 1, "0-2 7", "delay60", "-1.000000", ""),
        (6, 1.5, 0, 50, 2, 2, 50, 0, "3-4", "delay99", "-1.000000", 'a, "b" c'),
        (7, 9, -1, -1, -1, 400, -1, 5, "", "big", "", ""),
    ] == shown(
        trace, "number", "submit", "wait", "run", "allocated_processors", "requested_processors",
        "requested_time", "status", "allocated_resources", "profile", "consumed_energy", "metadata",
    )  # fmt: skip
    assert ["w0"] * 3 == trace.extra["workload_name"].tolist()
    assert 8 == trace.processors  # resource 7 is the last one that is known
    written = generate_batsim_jobs(trace).decode().splitlines()
    assert ",".join(COLUMNS) == written[0]
    assert (
        "5,w0,delay60,0,4,90,1,COMPLETED_SUCCESSFULLY,5,60,65,5,65,1.0833333333333333,0-2 7,"
        "-1.000000," == written[1]
    )
    assert "7,w0,big,9,400,-1,0,REJECTED,,,,,,,,," == written[3]


def test_jobs_are_placed_by_first_fit():
    """Jobs get the lowest processors that are free, in pieces if need be; states say the end."""
    rows = [line.split(",") for line in generate_batsim_jobs(parse_swf(SWF)).decode().splitlines()]
    columns = {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}
    states = [state.removeprefix("COMPLETED_") for state in columns["final_state"]]
    ends = ["SUCCESSFULLY", "WALLTIME_REACHED", "FAILED", "KILLED", "REJECTED"]
    assert ends + ends[:1] * 3 == states
    assert {
        "allocated_resources": ["0-3", "4-6", "0-5", "7", "", "0-1", "2-3", "0-1 4-7"],
        "success": ["1", "0", "0", "0", "0", "1", "1", "1"],
        "starting_time": ["5", "5", "65", "5", "", "2000", "2000", "2010"],
        "finish_time": ["65", "65", "75", "1005", "", "2009", "2090", "2019"],
    }.items() <= columns.items()
    assert ["1.0833333333333333", ""] == columns["stretch"][1:5:3]


def test_columns_in_any_order_and_older_names():
    """Columns are found by name; older names are known, others ignored; odd states are counted."""
    trace = parse_batsim_jobs(
        "execution_time,allocated_processors,jobID,colour,finish_time,submission_time,"
        "starting_time,requested_number_of_processors,success\n"
        "281.0,20 19,134,red,2253.0,1971.0,1972.0,2,1\n\n"
        ",,w0!135,,,1980,,3,\n"
    )
    assert [(134, 1, 281, 2, 2, 1, ""), (135, -1, -1, -1, 3, -1, "w0!135")] == shown(
        trace, "number", "wait", "run", "allocated_processors", "requested_processors", "status",
        "job_id",
    )  # fmt: skip
    assert 21 == trace.processors
    trace = parse_batsim_jobs(
        "job_id,submission_time,final_state\n1,0,RUNNING\n2,0,SLEEPING\n3,nan,COMPLETED_KILLED\n"
    )
    assert ([-1, -1, 5], [0, 0, -1]) == (trace["status"].tolist(), trace["submit"].tolist())
    assert {"final state not recognised: status unknown": 1} == trace.repaired


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [("", 0, -1), ("5", 1, 5), ("0-3 5", 5, 5), ("5 2-2 7 1-3", 5, 7), ("0-9 3-4 9-12", 13, 12),
     ("3-1", None, None), ("a", None, None), ("1,2", None, None), ("1  2", None, None),
     ("9" * 16, None, None), ("-1", None, None)],
)  # fmt: skip
def test_sets_of_resources(text, count, last):
    """Intervals may overlap and be in any order; invalid ones are distinguished."""
    assert count == count_of(text)
    if count is not None:
        assert last == last_of(text)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.filterwarnings("ignore")  # those of evalys
def test_evalys_reads_a_run(kth, tmp_path):
    """Evalys finds every job of a run of KTH where we say, and the same utilization."""
    if importlib.util.find_spec("evalys") is None:
        pytest.skip("evalys is not installed; it is in the extra dev")
    from evalys.jobset import JobSet
    from hpcrowd import replay

    jobs = Trace(kth.header, {name: values[:3000] for name, values in kth.columns.items()})
    run = replay(jobs, scheduler="easy")
    write_trace(run.to_trace(), tmp_path / "out_jobs.csv")
    read = JobSet.from_csv(tmp_path / "out_jobs.csv")
    assert (0, 99) == (read.res_bounds.inf, read.res_bounds.sup)
    frame = read.df.set_index(read.df.jobID.astype(int)).loc[run.jobs.number]
    assert run.jobs.start.tolist() == frame.starting_time.tolist()
    assert run.jobs.end.tolist() == frame.finish_time.tolist()
    assert run.jobs.processors.tolist() == [len(one) for one in frame.allocated_resources]
    utilization = read.mean_utilisation() / 100  # of 100 processors
    assert run.metrics["utilization"] == pytest.approx(utilization, abs=1e-6)
    free = read.free_intervals()  # fails where a job takes what is not free
    assert 0 <= free.free_itvs.map(len).min()


WHOLE = b"""; UnixStartTime: 1000
; Note: \xe9
; MaxProcs: 64
1 0 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1 -1 -1
2 10 -1 -1 -1 -1 -1 -1 -1 -1 5 7 3 -1 -1 -1 1 4
; outage
2 20.5 0 0 3 12.5 -1 4.5 0 -1 0 8 3 -1 -1 -1 -1 -1
"""


def workload(*jobs):
    """A workload of jobs that ask for nothing."""
    least = {"subtime": 0, "res": 1, "profile": "p"}
    profiles = {"p": {"type": "delay", "delay": 1}}
    listed = [{"id": str(place)} | least | job for place, job in enumerate(jobs, start=1)]
    return json.dumps({"jobs": listed, "profiles": profiles})


def test_story_of_a_workload():
    """Ids, times, resources, profiles and keys of users are where they belong, exactly."""
    trace = parse_batsim(BATSIM)
    assert [
        ("w0!4", 4, 0, 20.25, 1, 30, -1, ""),
        ("w0!2", 2, 1.5, 46.5, 4, -1, "ann", "true"),
        ("w0!7", 7, 10, -1, 8, -1, "bo", ""),
    ] == shown(
        trace, "job_id", "number", "submit", "run", "requested_processors", "requested_time",
        "user", "gpu",
    )  # fmt: skip
    assert {"profile of type parallel_homogeneous has no run time: unknown": 1} == trace.repaired
    assert 8 == trace.processors
    assert [
        "2.2", "3", "3", "8", "No", "from a workload of Batsim", "for a test"
    ] == [value for _, value in trace.header.entries()]  # fmt: skip
    # a file with ever new keys does not fill the memory with columns
    trace = parse_batsim(workload({f"key{number}": 1 for number in range(105)}))
    assert 100 == len(trace.extra)
    assert {"more than 100 different keys: the others ignored": 1} == trace.repaired


def test_what_batsim_demands_is_written():
    """Ids are unique texts, resources whole, walltimes and delays positive, whatever the trace."""
    data = generate_batsim(parse_swf(WHOLE))
    document, known = json.loads(data), {"user": 7, "group": 3}
    assert WHOLE == generate_swf(parse_batsim(data))  # all comes back, header and comments, too
    assert 3 == sum(line.startswith(b'{"id": ') for line in data.splitlines())  # one job a line
    assert 64 == document["nb_res"]
    assert [
        {"id": "1", "subtime": 0, "walltime": 90, "res": 4, "profile": "delay60", "wait": 5,
         "allocated_processors": 4, "status": 1} | known,
        {"id": "line2", "subtime": 10, "res": 1, "profile": "delay0.001", "number": 2, "run": -1,
         "status": 5, "requested_processors": -1, "preceding": 1, "think_time": 4} | known,
        {"id": "line3", "subtime": 20.5, "res": 5, "profile": "delay0.001", "number": 2, "run": 0,
         "status": 0, "requested_processors": 4.5, "requested_time": 0, "wait": 0,
         "allocated_processors": 3, "average_cpu": 12.5, "user": 8, "group": 3},
    ] == document["jobs"]  # fmt: skip
    delays = {"delay60": 60, "delay0.001": 0.001}
    expected = {name: {"type": "delay", "delay": delay} for name, delay in delays.items()}
    assert expected == document["profiles"]


@pytest.mark.parametrize(
    ("ids", "numbers", "job_ids"),
    [
        (["3", 1, "2"], [3, 1, 2], []),
        (["a", "2", "3"], [1, 2, 3], ["a", "", ""]),
        (["w0!1", "w1!1", "w0!2"], [1, 2, 3], ["w0!1", "w1!1", "w0!2"]),
        (["9" * 30, "2", "4"], [1, 2, 3], ["9" * 30, "", "4"]),
    ],
)
def test_ids(ids, numbers, job_ids):
    """Ids that are different numbers are kept; others are counted from 1, and kept as text."""
    trace = parse_batsim(workload(*({"id": one} for one in ids)))
    assert numbers == trace["number"].tolist()
    assert job_ids == list(trace.extra.get("job_id", ()))


def test_run_times_of_profiles():
    """Sequences are summed, also within each other; those that cannot be known are unknown."""
    times, kinds = run_times({
        "d": {"type": "delay", "delay": 2},
        "s": {"type": "composed", "seq": ["d", "d"], "repeat": 3},
        "t": {"type": "SequentialCompositionProfile", "seq": ["s", "d"]},
        "m": {"type": "composed", "seq": ["d", "p"]},
        "p": {"type": "msg_par", "cpu": [1]},
        "self": {"type": "composed", "seq": ["self"]},
        "none": {"type": "composed", "seq": ["missing"]},
        "odd": {"type": "delay", "delay": "2"},
        "big": {"type": "composed", "seq": ["d"], "repeat": 1e300},
        "x": 5,
    })  # fmt: skip
    assert {
        "d": 2, "s": 12, "t": 14, "m": -1, "p": -1, "self": -1, "none": -1, "missing": -1,
        "odd": -1, "big": -1, "x": -1,
    } == times  # fmt: skip
    assert ("msg_par", "composed") == (kinds["m"], kinds["self"])
    chain = {f"s{i}": {"type": "composed", "seq": [f"s{i + 1}"]} for i in range(5_000)}
    times, _ = run_times(chain | {"s5000": {"type": "delay", "delay": 7}})
    assert 7 == times["s0"]  # no recursion


def test_ids_are_unique():
    """An id that comes again is refused with both lines, as Batsim does; 1 and "1" are one id."""
    text = workload({"id": 1}, {}, {"id": "1"}).replace("}, {", "},\n{")
    with pytest.raises(ParseError, match=r"line 3, field id: '1'.* another job, too: line 1"):
        parse_batsim(text)
    rows = "job_id,workload_name,submission_time\n7,a,0\n7,b,0\n"
    assert [7, 7] != parse_batsim_jobs(rows)["number"].tolist()  # of two workloads
    with pytest.raises(ParseError, match=r"line 4, field job_id: '7'.* another job, too: line 2"):
        parse_batsim_jobs(rows + "7,a,1\n")


NUMBERS = st.integers(0, 2**50) | st.floats(0, 2**50)


@given(
    st.sampled_from(("subtime", "walltime", "res")),
    st.text(max_size=5) | st.integers().map(str) | st.booleans() | st.none() | st.lists(NUMBERS)
    | st.integers(2**60),
)  # fmt: skip
@example("res", 1.5)
@example("res", -1)
@example("walltime", 0)
@example("walltime", -2)
def test_other_values_are_refused(key, value):
    """What Batsim does not take as a number is refused, with the job and the field."""
    with pytest.raises(ParseError, match=f"field {key}: .*job j7: "):
        parse_batsim(workload({"id": "j7", key: value}))


def test_jobs_beyond_their_walltime_are_killed(tmp_path):
    """The mean response of 22 jobs, by which Batsim tests walltimes, is 175 / 22 = 7.95 s."""
    from hpcrowd import replay

    jobs = [{"walltime": walltime} for walltime in (*range(1, 21), -1)]
    text = workload(*jobs, {"subtime": 10}).replace('"delay": 1}', '"delay": 10}')
    path = tmp_path / "walltime.json"
    path.write_text(f'{{"nb_res": 64, {text[1:]}')
    run = replay(path, users="rigid")
    assert 175 / 22 == run.metrics["response_mean_s"]
    assert 9 == run.metrics["jobs_killed"]
    assert ["9 jobs longer than requested: killed then, as the trace says (AllowOveruse: No); "
            "--overrun keep lets them run"] == run.remarks  # fmt: skip
    assert 10 == replay(path, users="rigid", overrun="keep").metrics["response_mean_s"]
    assert "kill" == run.to_trace().header.overrun()  # and so does a replay of the run
    swf = generate_swf(parse_swf(SWF))
    assert swf == generate_swf(parse_batsim(generate_batsim(parse_swf(swf))))  # not where it keeps


#: JSON of others, and what a message says of it.
OTHERS = {
    "condor_history -json": ('[\n{"ClusterId":7,"ProcId":0}\n]', "condor_history -long"),
    "qstat": ('{"pbs_version":"2","Jobs":{"7.s":{"queue":"q"}}}', "qstat; .*accounting"),
    "pbsnodes": ('{"pbs_version":"2","nodes":{"n1":{"state":"free"}}}', "pbsnodes: nodes"),
    "bjobs": ('{"COMMAND":"bjobs","JOBS":1,"RECORDS":[{"JOBID":"1"}]}', "lsb.acct"),
    "sinfo": ('{"meta":{"plugin":{"type":"openapi/v0.0.38"}},"nodes":[{"name":"n"}]}',
              "hpcrowd machine reads it"),
    "sinfo 23": ('{"sinfo":[{"node":{}}],"meta":{"plugin":{"data_parser":"x"}},"errors":[]}',
                 "hpcrowd machine reads it"),
    "scontrol": ('{"partitions":[],"meta":{"plugin":{"data_parser":"x"}}}', "hpcrowd machine"),
    "oarstat": ('{"42":{"owner":"a","state":"Running","submissionTime":1}}', "oarstat; .*--map"),
    "flux": ('{"jobs":[{"id":1,"t_submit":1.5,"state":"R"}]}', "flux jobs -A -o .*--map"),
    "list": ('[{"user":"a","end":3}]', "a list of JSON objects with end, user; .*read_json"),
    "lines": ('{"user":"a"}\n{"user":"b"}\n', "lines of JSON objects with user; .*lines=True"),
    "GeoJSON": ('{"type":"FeatureCollection","features":[]}', "GeoJSON, a map"),
    "notebook": ('{"cells":[],"metadata":{},"nbformat":4}', "a Jupyter notebook"),
    "summary": ('{"jobs_in":2,"makespan_s":3}', "a result of hpcrowd; .*trace.swf.gz"),
    "provenance": ('{"format":1,"label":"x","configuration":{}}', "a result of hpcrowd"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "what"), OTHERS.values(), ids=OTHERS)
def test_json_of_others_is_named(tmp_path, text, what):
    """JSON of others is named, with what to read instead, whatever its format is said to be."""
    path = tmp_path / "x.json"
    path.write_text(text)
    for name in (None, "batsim", "sacct-json", "swf", "gwf", "pbs", "htcondor", "csv"):
        with pytest.raises(TraceError, match=f"x.json: is .*{what}"):
            read_trace(path, options=FormatOptions(format=name))
