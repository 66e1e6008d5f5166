"""Changes of the platform from a file, and what a run says of them."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from hpcrowd import Clock, gantt, parse_swf, read_results, replay, write_results, write_swf
from hpcrowd.analysis.accounts.platform import platform_lines
from hpcrowd.environment.engine.attempts import MEANING
from hpcrowd.errors import QuantityError
from hpcrowd.platform import Failures, Maintenance, NodesDown, Resize, SpeedChange, SwitchPolicy
from hpcrowd.scenarios.kinds.platform_files import PlatformConfig

#: Every kind of change, dates and durations.
FILE = """
resubmit_after = "15m"
changes = [
{do = "down", at = "1h", until = 2024-01-08T10:00:00, processors = 2, jobs = "resubmit"},
{do = "fail", mean = "8h", repair_mean = 600, distribution = "weibull", shape = 0.7, start = "1d"},
{do = "maintain", start = "2024-01-09 08:00", end = "26h", announced = "2h", jobs = "run"},
{do = "resize", at = 100, processors = 8},
{do = "speed", at = "1d 1h", factor = 2},
{do = "switch", at = "2d", scheduler = "fcfs"},
]
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and returns its path."""

    def writer(text):
        path = tmp_path / "outage.toml"
        path.write_text(text)
        return str(path)

    return writer


def job(submit, run, processors):
    """A job of user 1."""
    return {
        "submit": submit, "wait": 0, "run": run, "requested_processors": processors,
        "requested_time": run, "user": 1, "status": 1,
    }  # fmt: skip


def test_every_kind(write):
    """Seconds, durations and local dates become seconds of the run."""
    config = PlatformConfig.read(write(FILE))
    monday = Clock(unix_start=1704697200, known=True)  # 2024-01-08 07:00 UTC
    assert "outage" == config.name
    assert 900 == config.resubmit_after
    assert [
        NodesDown(3600, 3 * 3600, 2, "resubmit"),
        Failures(28800, 600, "weibull", 0.7, start=86400),
        Maintenance(25 * 3600, 26 * 3600, 7200, "run"),
        Resize(100, 8),
        SpeedChange(90000, 2),
        SwitchPolicy(172800, "fcfs"),
    ] == config.of(monday)
    assert [] == config.of(monday, "north")


RESIZE = '[[changes]]\ndo = "resize"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "changes: missing"),
        ('[[changes]]\ndo = "explode"', "explode"),
        (f"{RESIZE}at = 3", "processors: missing"),
        (f"{RESIZE}at = 3\nprocessors = 0", "must be 1 or more"),
        ('[[changes]]\ndo = "switch"\nat = 3\nscheduler = "nosuch"',
         "changes[0].switch.scheduler: scheduler 'nosuch': not known; choose fcfs"),
        ('resubmit_after = "never"\n[[changes]]\ndo = "down"\nat = 1', "duration 'never'"),
        ('[[changes]]\ndo = "down"\nat = 1\ncluster = "north"',
         "changes[0]: cluster 'north': no such cluster"),
        # What cannot be on this cluster in this run.
        ('[[changes]]\ndo = "down"\nat = 3\nprocessors = 5',
         "cluster home: nodes down at 3 s: 5 processors would be down"),
        ('[[changes]]\ndo = "down"\nat = "2024-01-07 08:00"',
         "changes[0]: at 2024-01-07 08:00:00: before the run begins, 2024-01-08 07:00"),
    ],
)  # fmt: skip
def test_mistakes(write, text, words):
    """A mistake is reported in one line with the file, the place, the value and the rule."""
    monday = "; UnixStartTime: 1704697200\n"
    trace = parse_swf(monday + " 1 0 0 10 4 -1 -1 4 10 -1 1 1 1 -1 1 -1 -1 -1\n")
    with pytest.raises(QuantityError) as caught:
        replay(trace, platform=write(text))
    assert words in str(caught.value)
    assert "outage.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_switch_to_any_policy(make_trace, write):
    """The policy that the file names, with its options, rules from its second on."""
    scheduler = "easy:backfill=sjbf"
    path = write(f'[[changes]]\ndo = "switch"\nat = 10\nscheduler = "{scheduler}"')
    trace = make_trace(job(0, 100, 3), job(1, 50, 4), job(2, 90, 1), job(3, 30, 1))
    run = replay(trace, users="rigid", scheduler="fcfs", platform=path, processors=4)
    assert [0, 100, 150, 10] == run.jobs.start.tolist()
    assert [[10, scheduler]] == run.summary()["platform"]["home"]["schedulers"]
    assert [f"cluster home: scheduler {scheduler}"] == platform_lines(run.parts["platform"].account)


def test_utilization_is_of_the_size_that_there_was(make_trace, write, tmp_path):
    """A machine that is full before and after it grows is used at 100 %, read back as well."""
    path = write(f"{RESIZE}at = 50\nprocessors = 8")
    trace = make_trace(job(0, 100, 4), job(0, 50, 4))
    run = replay(trace, users="rigid", platform=path, processors=4)
    assert [0, 50] == run.jobs.start.tolist()
    assert (4, 1.0) == (run.processors, run.metrics["utilization"])
    assert ["cluster home: 8 processors"] == platform_lines(run.parts["platform"].account)
    write_results(run, tmp_path / "out", plots=False)
    assert run.metrics == read_results(tmp_path / "out").metrics
    figure = gantt(run, (0, 100))
    assert "ran on 4 to 8 processors, 100.0 % of them in use" in figure.texts[1].get_text()
    (line,) = figure.axes[0].lines
    assert ([0, 50, 100], [4, 8, 8]) == tuple(list(data) for data in line.get_data())


def test_runs_without_changes(make_trace, write):
    """Where the run has ended before its changes, it says so; without any it says nothing."""
    path = write(f'{RESIZE}at = "2d"\nprocessors = 8')
    run = replay(make_trace(job(0, 100, 4)), platform=path)
    assert ["cluster home: nothing changed in the run"] == platform_lines(
        run.parts["platform"].account
    )
    run = replay(make_trace(job(0, 10, 1)))
    assert "platform" not in run.summary()
    assert run.configuration["platform"] is None
    dated = write(f'{RESIZE}at = "2024-01-08 10:00"\nprocessors = 1')
    with pytest.raises(QuantityError, match="has no start time"):
        replay(make_trace(job(0, 10, 1)), platform=dated)
    with pytest.raises(QuantityError, match=r"nowhere.toml: cannot be read"):
        replay("no.swf", platform="nowhere.toml")


def test_command(make_trace, tmp_path, write, call):
    """The command shows what happened, and its folder holds the runs that were stopped."""
    trace, out = tmp_path / "small.swf", tmp_path / "out"
    write_swf(make_trace(job(0, 100, 4), job(10, 50, 4)), trace)
    path = write('[[changes]]\ndo = "down"\nat = 60\nuntil = 70\nprocessors = 4\njobs = "fail"')
    command = ("replay", trace, "--users", "rigid", "--processors", "4", "--platform", path)
    assert "1 run stopped (1 failed)" in call(*command, "--out", out)[1]
    home = json.loads((out / "summary.json").read_text())["platform"]["home"]
    known = {"down_processor_s": 40, "runs_stopped": 1, "runs_failed": 1, "lost_processor_s": 240}
    assert known | {"policies_s": {"easy": 120}} == {name: one for name, one in home.items() if one}
    attempts = pd.read_parquet(out / "attempts.parquet")
    assert list(MEANING) == list(attempts.columns)
    known = attempts[["row", "number", "start", "end", "cause", "fate"]].to_numpy().tolist()
    assert [[0, 1, 0, 60, "down", "fail"]] == known
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    provenance = json.loads((out / "provenance.json").read_text())
    assert {"outage.toml": digest} == provenance["configuration"]["files_sha256"]
