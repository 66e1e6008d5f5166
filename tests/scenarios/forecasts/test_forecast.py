"""The command ``hpcrowd forecast``: what it reads, says, refuses and writes; and its watch."""

import html
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hpcrowd as hc
import numpy as np
import pandas as pd
import pytest
from hpcrowd.analysis.forecast.answers import MEANING
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.environment.state.files import read_state, write_state
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.scenarios.forecasts import making as judging
from hpcrowd.scenarios.forecasts import watching
from hpcrowd.scenarios.forecasts.forecast import Forecast
from hpcrowd.scenarios.forecasts.inputs import parse_job, state_from

from tests.environment.state.test_slurm import PAST
from tests.scenarios.forecasts.forecast_cases import (
    CLOCK,
    PROCESSORS,
    busy_moment,
    site_log,
    state_at,
    swf_of,
)

LOG = site_log(4)
NOW = busy_moment(LOG)

#: Options with which a forecast takes a moment.
QUICK = ("--futures", "4", "--hindcasts", "0", "--days", "0.5")

#: A machine of Slurm whose files do not describe the QOS of its queue.
CONF = """ClusterName=toy
AccountingStorageEnforce=associations,limits,qos
NodeName=n[1-5] CPUs=16 RealMemory=64000
PartitionName=long Nodes=n[1-5] Default=YES MaxTime=240
"""
QUEUE = """JOBID|USER|ACCOUNT|PARTITION|STATE|CPUS|TIME_LIMIT|TIME|START_TIME|SUBMIT_TIME|REASON|QOS
21|ada|physics|long|RUNNING|48|4:00:00|1:30:00|2024-01-31T12:30:00|2024-01-31T12:00:00|None|normal
22|bob|physics|long|PENDING|16|2:00:00|0:00|N/A|2024-01-31T13:45:00|Priority|normal
23|bob|physics|long|PENDING|16|9:00:00|0:00|N/A|2024-01-31T13:50:00|Priority|low
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The site's log, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return swf_of(LOG, tmp_path / "log.swf")


def told(call, *words):
    """Return what the command prints when it succeeds."""
    code, out, err = call("forecast", *words)
    assert 0 == code, err
    return out, err


def found(call, *words):
    """Return the JSON object that the command prints."""
    result: dict[str, Any] = json.loads(
        told(call, *words, *QUICK, "--json")[0], parse_constant=pytest.fail
    )
    return result


def refused(call, *words):
    """Return the one line by which the command refuses something."""
    code, out, err = call("forecast", *words)
    assert (2, "", 1) == (code, out, err.count("\n")), err
    return err


def test_json_has_what_it_documents(log, call):
    """All documented keys are there, for jobs that wait and those that one would submit."""
    wire = found(
        call, "log.swf", "--at", str(NOW), "--job", "4 x 2 processors for 2 h, user 3",
        "--instead", "8 x 1 processors for 2 h", "--change", "processors=64",
    )  # fmt: skip
    for key in MEANING:
        outer, _, inner = key.partition(".")
        inside = wire[outer] if isinstance(wire[outer], list) else [wire[outer]]
        assert not inner or all(inner in one for one in inside), key
    waiting = state_at(NOW, LOG).waiting
    assert [*LOG.number[waiting].tolist(), None] == [job["number"] for job in wire["jobs"]]
    assert (4, 3, 2) == tuple(wire["jobs"][-1][key] for key in ("count", "user", "processors"))
    for job in wire["jobs"]:
        bounds = [b for b in job["start_s"].values() if b is not None]
        assert [NOW, *bounds] == sorted([NOW, *bounds])
    assert (2, True) == (len(wire["effects"]), wire["eaten_up"] is not None)
    assert (NOW, NOW + DAY // 2) == (wire["now_s"], wire["until_s"])


def test_a_folder_is_written(log, call):
    """Tables, pictures and a page; the command in it makes the same forecast again."""
    words = ["log.swf", "--at", str(NOW), "--job", "2 processors for 1 h", *QUICK, "--keep", "kept"]
    out, err = told(call, *words, "--out", "out", "--change", "processors=32")
    assert "Results are in out/" in err
    for text in ("3 waiting jobs", "processors=32", *LOG.number[state_at(NOW, LOG).waiting]):
        assert str(text) in out
    for kept in Path("kept").iterdir():
        kept.write_bytes(b"")
    err = told(call, *words, "--out", "out", "--force")[1]
    assert "damaged; it is done again" in err
    wire = json.loads(Path("out/forecast.json").read_text())
    names = {path.name for path in Path("out").iterdir()}
    assert {"forecast.json", "jobs.csv", "fans.csv", "waits.csv", "fans.png", "report.html",
            "provenance.json", "starts.png"} <= names  # fmt: skip
    assert len(wire["jobs"]) == len(pd.read_csv("out/jobs.csv"))
    settings = json.loads(Path("out/provenance.json").read_text())["configuration"]
    expected = {"futures": 4, "hindcasts": 0, "source": "log.swf", "jobs": ["2 processors for 1 h"]}
    assert expected.items() <= settings.items()
    again = Forecast(
        Path("log.swf"), at=str(NOW), jobs=("2 processors for 1 h",), futures=4, hindcasts=0,
        days=0.5,
    ).again(Path("out"))  # fmt: skip
    assert again in html.unescape(Path("out/report.html").read_text())
    program, command, *words = shlex.split(again)
    assert ("hpcrowd", "forecast") == (program, command)
    told(call, *words[:-1], "two")
    assert wire == json.loads(Path("two/forecast.json").read_text())
    quiet = next(at for at in range(NOW, NOW + 2 * DAY, 600) if not len(state_at(at, LOG).waiting))
    told(call, "log.swf", "--at", str(quiet), *QUICK, "--out", "quiet")
    table = pd.read_csv("quiet/jobs.csv")  # has its columns and no row
    assert (0, True) == (len(table), {"number", "start_p50_s", "end_p95_s"} <= set(table))


def test_what_users_submit_is_said(log, call):
    """Beside what they submitted; a record too short for them to go on from is refused."""
    for hours, record in ((6, "6.0 h"), (0.5, "30.0 min")):
        recent = (LOG.recorded_submit >= NOW - hours * HOUR) & (LOG.recorded_submit <= NOW)
        jobs = LOG.take(np.flatnonzero(recent))
        jobs.recorded_submit[0] = NOW - round(hours * HOUR)
        swf_of(jobs, log)
        words = (str(log), "--at", str(NOW), *QUICK)
        if hours == 6:
            out, _ = told(call, *words)
            assert re.search(rf"submit [1-9]\S+ jobs per day .* {record} has {len(jobs)} jobs", out)
        else:
            error = refused(call, *words)
            assert f"in 4 futures, but the record of {record} has {len(jobs)} jobs; give" in error
            out, _ = told(call, *words, "--users", "none")
            assert "Users submit" not in out


def test_a_snapshot_gives_the_same_forecast(log, call):
    """As the trace that it is of; packed or not; and it says what is in it."""
    words = ("--job", "2 processors for 1 h", "--seed", "7")
    expected = found(call, "log.swf", "--at", str(NOW), *words)
    for name in ("now.json", "now.state.gz"):
        out, _ = told(call, "log.swf", "--at", str(NOW), "--snapshot", name)
        assert "3 waiting" in out
        assert expected | {"source": ""} == found(call, name, *words) | {"source": ""}
    says = json.loads(told(call, "now.json", "--snapshot", "again.json", "--json")[0])
    assert {"snapshot", "now_s", "processors", "running", "waiting", "over"} == set(says)
    assert (NOW, PROCESSORS, 3) == (says["now_s"], says["processors"], says["waiting"])


def test_python_says_the_same(log, call):
    """``hc.forecast`` of a file, a trace and a state, at a moment given in several ways."""
    choices: dict[str, Any] = {"futures": 4, "hindcasts": 0, "days": 0.5}
    assert int(LOG.recorded_submit.max()) == hc.forecast(log, **choices).answers.to_dict()["now_s"]
    expected = found(call, "log.swf", "--at", "20d")
    day = CLOCK.local(20 * DAY).strftime("%Y-%m-%d 00:00")
    state = state_from(log, at=20 * DAY)
    ways = ((log, {"at": day}), (read_swf(log), {"at": 20 * DAY}), (state, {}))
    for source, more in ways:
        answers = hc.forecast(source, **more, **choices).answers.to_dict()
        assert [expected[key] for key in ("now_s", "jobs")] == [answers["now_s"], answers["jobs"]]
    with pytest.raises(QuantityError, match=r"futurs: .*futures"):
        hc.forecast(log, futurs=3)


def test_bounds_that_hindcasts_teach(tmp_path, monkeypatch, call):
    """They replace those of the futures, which are given, too."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judging, "FEW", 1000)  # in this process
    busy = site_log(8, 9)
    swf_of(busy, tmp_path / "busy.swf")
    words = ("busy.swf", "--at", str(busy_moment(busy)), *QUICK[:2], "--days", "2", "--json")
    wire, raw = (json.loads(told(call, *words, "--hindcasts", n)[0]) for n in ("60", "0"))
    assert (True, False) == (wire["recalibrated"], raw["recalibrated"])
    assert any(job["start_s"] != job["raw_start_s"] for job in wire["jobs"])
    assert [job["raw_start_s"] for job in wire["jobs"]] == [job["start_s"] for job in raw["jobs"]]


#: Words after ``forecast log.swf``, and what the line has to say.
WRONG = {
    "form of a job": (("--job", "big"), r"--job 'big': write '64 processors for 6 h'"),
    "large job": (("--job", "64 processors for 6 h"), r"64 proc.* machine has 16; ask for 1 to 16"),
    "huge job": (("--job", f"{'9' * 5000} processors for 6 h"), r"--job '9+.*"),
    "many jobs": (("--job", "5000 x 1 processors for 6 h"), r"5,000 jobs; ask for 1 to 1,000"),
    "time of a job": (("--job", "4 processors for ever"), r"--job '4 processors for ever': .*ever"),
    "no time": (("--job", "4 processors for 0 h"), r"a time of 0 s; give a longer one"),
    "endless job": (("--job", "4 processors for 999999999999 d"), r"--job .*999999999999"),
    "unknown user": (("--job", "4 processors for 6 h, user eve"), r"no user 'eve' in log.swf"),
    "unknown queue": (("--job", "4 processors for 6 h, in night"), r"no queue 'night' in log.swf"),
    "instead of nothing": (("--instead", "4 processors for 6 h"), r"--instead: .*--job"),
    "form of a change": (("--change", "more"), r"--change 'more': write NAME=VALUE"),
    "unknown change": (("--change", "users=rigid"), r"--change 'users=rigid': .*processors"),
    "change of size": (("--change", "processors=many"), r"'processors=many': a number of proc"),
    "too small": (("--change", "processors=1"), r"'processors=1': the jobs that run now hold 16"),
    "unknown policy": (("--change", "scheduler=quick"), r"scheduler.*'?quick'?"),
    "change of overrun": (("--change", "overrun=stop"), r"overrun 'stop': .*keep.*kill"),
    "scheduler": (("--scheduler", "quick"), r"scheduler.*quick"),
    "users": (("--users", "lazy"), r"users 'lazy'"),
    "model": (("--users", "learned:nowhere.parquet"), r"nowhere\.parquet"),
    "no days": (("--days", "0"), r"days 0"),
    "many days": (("--days", "1e9"), r"days 1"),
    "before the log": (("--at", "-5"), r"-5"),
    "no moment": (("--at", "yesterday"), r"yesterday"),
    "past of a trace": (("--past", "log.swf"), r"--past .*: is for a queue of Slurm"),
    "platform": (("--platform", "log.swf"), r"log\.swf"),
    "watch": (("--watch", "1h"), r"--watch: .*--out DIR"),
    "watch too often": (("--watch", "0", "--out", "o"), r"watch 0"),
    "judge": (("--judge",), r"judge: a log of \d\.\d weeks; .* needs 6 weeks"),
    "snapshot": (("--snapshot", "no/where.json"), r"no folder no|where"),
    "executor": (("--executor", "magic"), r"--executor .?magic"),
    "size": (("--processors", "2"), r"processors"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_one_line(log, call, what):
    """With what is wrong and its cure, exit code 2, before anything is computed or written."""
    words, pattern = WRONG[what]
    more = QUICK if "--days" not in words else QUICK[:4]
    err = refused(call, "log.swf", "--at", str(NOW), *words, *more)
    assert re.search(pattern, err), err
    assert len(err) < 700
    assert ["log.swf"] == [path.name for path in Path().iterdir()]


def test_errors_of_states_name_their_line(log, call):
    """A version of the future, a contradiction, and options that a state has no use for."""
    write_state(state_at(NOW, LOG), Path("now.json"))
    text = Path("now.json").read_text()
    lines = text.splitlines(keepends=True)
    wrong = next(n for n, line in enumerate(lines) if '"start"' in line and '"end"' in line)
    contradicts = re.sub(r'"end": \d+', '"end": 0', lines[wrong])
    for name, content, pattern in (
        ("future.json", text.replace('"version": 1', '"version": 2', 1), r"future.json.*version"),
        ("odd.json", "".join([*lines[:wrong], contradicts, *lines[wrong + 1 :]]),
         rf"odd\.json.*line {wrong + 1}\b.*earlier"),
        ("half.json", "".join(lines[:-2]), r"half\.json"),
        ("small.json", re.sub(r'"processors": 16', '"processors": 4', text, count=1),
         r"small\.json.*line \d+.*machine has 4"),
        ("log.swf", "; Version: 2.2\n; MaxProcs: 8\n", r"log\.swf"),
    ):  # fmt: skip
        Path(name).write_text(content)
        assert re.search(pattern, err := refused(call, name, *QUICK)), err
    for words, pattern in (
        (("--past", "log.swf"), r"--past log\.swf: now\.json is a state and has its own"),
        (("--at", "5"), r"--at 5: now\.json is a state, with its own moment"),
        (("--judge",), r"now\.json.*is a state.*give a trace"),
        (("--processors", "3"), r"machine has 3"),
    ):
        assert re.search(pattern, err := refused(call, "now.json", *words, *QUICK)), err


def test_words_of_jobs():
    """Long and short, one and many, with a user and a queue, by name or number."""
    jobs = LOG.copy()
    jobs.names = {"user": {1: "ada"}, "queue": {1: "long jobs"}}
    state = replace(state_at(NOW, LOG), jobs=jobs)
    for text, expected in {
        "8 processors for 6 h": (8, 6 * HOUR, -1, -1, 1),
        "8 cores for 6 hours": (8, 6 * HOUR, -1, -1, 1),
        "8 x 30 minutes": (8, 1800, -1, -1, 1),
        "1 processor for 90m": (1, 5400, -1, -1, 1),
        "8 x 6h": (8, 6 * HOUR, -1, -1, 1),
        "8 x 0.5 hours": (8, 1800, -1, -1, 1),
        "4 x 8 processors for 30 min": (8, 1800, -1, -1, 4),
        "8 cpus for 1d, user ada": (8, DAY, 1, -1, 1),
        "2 for 1h, user 2, in long jobs": (2, HOUR, 2, 1, 1),
    }.items():
        one = parse_job(text, state)
        assert expected == (one.processors, one.requested, one.user, one.queue, one.count), text


#: Names that do harm where they reach a shell or a terminal.
HOSTILE = ("$(touch x)", "`touch x`; touch x", "a'b\"c", "\x1b[31m&amp;")


def test_hostile_names_do_no_harm(tmp_path, monkeypatch, call):
    """They reach no shell, and no control character reaches the terminal."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{n}|{name}|{name}|long|PENDING|4|1:00:00|0:00|N/A|2024-01-31T13:50:00|Priority|normal"
        for n, name in enumerate(HOSTILE, 30)
    ]
    Path("queue.txt").write_text("\n".join((*QUEUE.splitlines()[:2], *rows, "")))
    Path("past.txt").write_text(PAST)
    job = "4 processors for 1 h, user $(touch x)"
    out, err = told(
        call, "queue.txt", "--past", "past.txt", "--processors", "80", "--zone", "UTC",
        "--at", "2024-01-31 14:00", "--job", job, *QUICK, "--out", "out",
    )  # fmt: skip
    assert "\x1b" not in out + err + Path("out/report.html").read_text()
    assert not Path("x").exists()
    wire = json.loads(Path("out/forecast.json").read_text())
    assert (1 + len(HOSTILE), "$(touch x)") == (len(wire["jobs"]), wire["jobs"][-1]["user_name"])
    assert f"'{job}'" in Forecast(Path("queue.txt"), jobs=(job,)).again(Path("o"))
    provenance = json.loads(Path("out/provenance.json").read_text())
    assert {"queue.txt", "past.txt"} == set(provenance["trace"]["files_sha256"])


def read(path):
    """Return the lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def watcher(path):
    """Return a quick forecast of a snapshot."""
    return Forecast(path, futures=4, hindcasts=0, days=1.0, users="none")


@pytest.fixture
def path(tmp_path):
    """The state of the site in a file."""
    write_state(state_at(NOW, LOG), tmp_path / "now.json")
    return tmp_path / "now.json"


@pytest.fixture
def changes(monkeypatch):
    """What happens while the watch sleeps, in turn."""
    steps: list[Callable[[], Any]] = []
    monkeypatch.setattr(watching.time, "sleep", lambda _: steps.pop(0)())
    return steps


def test_a_watch_says_how_forecasts_fared(path, changes, capsys):
    """Two rounds, between which jobs have started: each is compared with what was said."""
    first, out = state_at(NOW, LOG), path.with_name("out")
    later = int(LOG.recorded_start[first.waiting].max())
    changes += [lambda: write_state(state_at(later, LOG), path)] * 2
    watching.watch(watcher(path), 1, out, rounds=3)
    assert {"forecasts.jsonl", "fared.jsonl", "latest"} == {one.name for one in out.iterdir()}
    said, fared = read(out / "forecasts.jsonl"), read(out / "fared.jsonl")
    unix = CLOCK.unix_start
    asked = [(line["job"], line["asked_at"]) for line in said if line["asked_at"] == NOW + unix]
    assert [(str(n), NOW + unix) for n in LOG.number[first.waiting].tolist()] == asked
    assert asked == [(line["job"], line["asked_at"]) for line in fared]  # and not again
    for line, one in zip(fared, said, strict=False):
        start = int(LOG.recorded_start[int(line["job"]) - 1]) + unix
        low, lower, middle, upper, high = one["start"]
        assert start == line["start"]
        assert line["median_error_s"] == (None if middle is None else start - middle)
        promised = low is not None or middle is None
        assert line["in_90"] == ((low or start) <= start <= (high or start) if promised else None)
        assert line["in_50"] == (
            (lower or start) <= start <= (upper or start) if promised else None
        )
    assert later == json.loads((out / "latest/forecast.json").read_text())["now_s"]
    words = capsys.readouterr().err
    assert "no forecast can be checked yet" in words
    assert f"{len(fared):,} forecasts checked now, {len(fared):,} in all" in words


def test_bounds_that_were_not_promised(tmp_path):
    """Without bounds only the median fares; a start before all futures is outside of the bounds."""
    unix, state = CLOCK.unix_start, state_at(int(LOG.recorded_start.max()), LOG)
    start, number = int(LOG.recorded_start[0]) + unix, int(LOG.number[0])
    said = [[None, None, start - 9, None, None], [None] * 5]
    lines = [
        {"job": str(number), "asked_at": start - 10 + place, "levels": [], "start": bounds}
        for place, bounds in enumerate(said)
    ]
    (tmp_path / "forecasts.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    assert watching.check(state, tmp_path) == 2
    withheld, missed = read(tmp_path / "fared.jsonl")
    assert (withheld["in_90"], withheld["in_50"], withheld["median_error_s"]) == (None, None, 9)
    assert (missed["in_90"], missed["in_50"], missed["median_error_s"]) == (False, False, None)


def test_a_watch_goes_on_after_a_bad_state(path, changes, capsys):
    """A file that is half written is a line; the first time it is an error."""
    text, out = path.read_text(), path.with_name("out")
    changes += [lambda: path.write_text(text[: len(text) // 2]), lambda: path.write_text(text)]
    watching.watch(watcher(path), 1, out, rounds=3)
    assert "trying again in 1 s" in capsys.readouterr().err
    assert 2 * len(read_state(path).waiting) == len(read(out / "forecasts.jsonl"))
    path.write_text(text[: len(text) // 2])
    with pytest.raises(HpcrowdError, match=r"now\.json"):
        watching.watch(watcher(path), 1, path.with_name("other"), rounds=1)
    with pytest.raises(QuantityError, match="needs a file that something writes anew"):
        watching.watch(Forecast(state_at(NOW, LOG)), 5, out)


def test_a_watch_leaves_out_damaged_lines_and_files_of_others(path, changes):
    """A changed byte costs a line, as does half of one; no other file is written to."""
    first, said = state_at(NOW, LOG), path.parent / "out/forecasts.jsonl"
    watching.watch(watcher(path), 1, said.parent, rounds=1)
    text, lines = said.read_bytes(), list(watching._read(said))
    for at in range(0, len(text), 41):
        said.write_bytes(text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :])
        left = list(watching._read(said))
        assert len(lines) - 2 <= len(left)
        assert [one for one in lines if one in left] == left
    said.write_bytes(text + b'{"job": "1", "asked_')
    second = state_at(int(LOG.recorded_start[first.waiting].min()), LOG)
    write_state(second, path)
    watching.watch(watcher(path), 1, said.parent, rounds=1)
    assert 0 < len(read(said.with_name("fared.jsonl"))) < len(first.waiting)
    assert len(first.waiting) + len(second.waiting) == len(read(said))
    for mine in ("my line", '{"my": 1}\n', "\xff\xfe"):
        said.write_text(mine)
        with pytest.raises(HpcrowdError, match="holds no line that a watch wrote"):
            watching.watch(watcher(path), 1, said.parent, rounds=1)
        assert mine == said.read_text()


@pytest.mark.slow
def test_the_judge_writes_a_folder(tmp_path, monkeypatch, call):
    """Tables for people, JSON for programs; the same on one core and on two."""
    pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")
    monkeypatch.chdir(tmp_path)
    swf_of(site_log(8, 9), tmp_path / "log.swf")
    words = ("log.swf", "--judge", "--moments", "5", "--users", "rigid")
    assert "QBETS by time" in told(call, *words, "--workers", "2", "--out", "out")[0]
    alone = json.loads(told(call, *words, "--workers", "1", "--json")[0])
    assert alone == json.loads(Path("out/judgement.json").read_text())


@pytest.fixture
def given(tmp_path):
    """A forecast from a queue of Slurm, whose files do not describe the QOS."""
    conf, queue = tmp_path / "slurm.conf", tmp_path / "queue.txt"
    conf.write_text(CONF)
    queue.write_text(QUEUE)
    return Forecast(queue, machine=(conf,), users="none", days=1)


def test_notes_on_qos_and_on_jobs_that_never_start(given):
    """Slurm has accepted the jobs, so the lack of a file must not reject all of them."""
    outset = given.outset(given.state())
    (note,) = (one for one in outset.state.notes if one.startswith("QOS"))
    assert note.startswith("QOS low, normal: not described, so without priority and limits;")
    (never,) = (one for one in outset.state.notes if "can never start" in one)
    assert never.endswith("on the machine as it is described: 1 PartitionTimeLimit")
    assert ["never starts: PartitionTimeLimit"] == list(outset.state.held.values())
    start = outset.simulate(0).start
    assert outset.state.now <= start[1] <= outset.state.now + 60  # job 22
    assert start[2] == UNKNOWN
    state = given.state()  # without nodes the number of processors that are up decides
    state.down = 80 - 48 - 8
    outset = Forecast(state, users="none", days=1).outset(state)
    assert set() == set(outset.state.held)  # 56 are up
    state.jobs.processors[1] = 60
    outset = Forecast(state, users="none", days=1).outset(state)
    assert {1: "never starts: more processors than are up"} == outset.state.held


@pytest.mark.parametrize(("days", "step"), [(1 / 24, 60), (0.5, 300), (2, 900), (7, 3600)])
def test_short_forecasts_have_short_steps(given, days, step):
    """A forecast of an hour is not one value."""
    state = given.state()
    assert step == Forecast(state, users="none", days=days).outset(state).step
