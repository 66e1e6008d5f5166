"""Remarks on runs whose load leaves the range of the record, and on concentrated records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.accounts.record import LEAST_JOBS, Record
from hpcrowd.analysis.report.words import headline, told
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.traces.trace import Trace

#: Days of the log, jobs a day, and the processors and seconds of each.
DAYS, PER_DAY, PROCESSORS, RUN = 50, 4, 2, HOUR


def log(days: int = DAYS, each: int = PER_DAY, run: int = RUN) -> JobTable:
    """A log with as many jobs on every day, by users 1 and 2 in turn."""
    jobs = JobTable(days * each)
    place = np.arange(len(jobs))
    jobs.number[:] = place + 1
    jobs.user[:] = 1 + place % 2
    jobs.processors[:], jobs.run_time[:], jobs.requested_time[:] = PROCESSORS, run, run
    jobs.recorded_submit[:] = jobs.submit[:] = place // each * DAY + place % each * (DAY // each)
    jobs.recorded_start[:] = jobs.recorded_submit
    jobs.recorded_end[:] = jobs.recorded_submit + run
    return jobs


def remarks(run: JobTable, **more: Any) -> list[str]:
    """The remarks on a run of the log."""
    record = Record.of(log())
    assert record is not None
    return record.remarks(run, "busy", **more)


def test_an_ordinary_run() -> None:
    """There is no remark on the record itself, nor at the factor of the range."""
    assert [] == remarks(log())
    assert [] == remarks(log(each=2 * PER_DAY, run=RUN // 2))


def test_too_many_jobs() -> None:
    """The model, the factor and what to do are named; the work is the same."""
    (line,) = remarks(log(each=3 * PER_DAY, run=RUN // 3))
    assert line.startswith(
        "load: busy users submit 12.0 jobs a day, 3 times the 4.0 of the record, "
    )
    assert "whose range is 0.5 to 2 times as much" in line
    assert "think-time" in line


def test_too_much_work_and_too_few_jobs() -> None:
    """Work counts by itself, and the range has a lower end."""
    (line,) = remarks(log(run=3 * RUN))
    assert "submit 24.0 processor-hours a day, 3 times the 8.0" in line
    few = log()
    few.submit[::2] = few.submit[::4].repeat(2) + DAYS * DAY
    few.submit[1::4] += DAYS * DAY
    assert "submit 1.0 jobs a day, 0.25 times" in remarks(few)[0]


def test_a_short_run_may_be_like_the_busiest_days() -> None:
    """What the record has on some days in a row is in its range."""
    varied = log()
    varied.recorded_submit[:40] = np.arange(40) * HOUR // 10
    record = Record.of(varied)
    assert record is not None
    busy = log(days=1, each=30)
    busy.submit[:] = 0
    assert [] == record.remarks(busy, "busy")
    assert "hours" in remarks(busy)[0]


def test_resampled_runs_begin_at_zero_and_have_a_size() -> None:
    """Twice the users may submit four times the jobs; the days are those of the run."""
    double = log(each=3 * PER_DAY)
    assert "jobs a day, 3 times the 4.0 and 24.0 processor-hours" in remarks(double, days=DAYS)[0]
    assert [] == remarks(double, days=DAYS, factor=2.0)


def test_few_jobs_are_not_judged(make_trace: Callable[..., Trace]) -> None:
    """Short logs have no remarks, and a run that submits nothing has none on its load."""
    assert Record.of(log(days=LEAST_JOBS // PER_DAY - 1)) is None
    nothing = log()
    nothing.submit[:] = -1
    assert [] == remarks(nothing)


def test_work_of_a_few_jobs_is_not_judged() -> None:
    """If one job is half of the work, its mean says little; jobs are judged anyway."""
    jobs = log()
    jobs.run_time[100] = 200 * RUN
    record = Record.of(jobs)
    assert record is not None
    assert not record.work.any()
    assert [] == record.remarks(log(), "busy")


def test_one_session_holds_most_jobs() -> None:
    """It is said what that means, only for users who think."""
    jobs = log()
    Work.of(jobs)
    jobs.session[:80] = 0
    record = Record.of(jobs)
    assert record is not None
    (line,) = record.concentrated
    assert line.startswith("concentration: one session holds 80 of 200 jobs (40%); think times")
    rigid = Record.of(jobs, thinks=False)
    assert rigid is not None
    assert () == rigid.concentrated


def test_one_user_submits_most_jobs() -> None:
    """A user counts if there are others, and no session is to blame."""
    jobs = log()
    jobs.user[:150] = 1
    record = Record.of(jobs)
    assert record is not None
    assert record.concentrated[0].startswith("concentration: one user submitted 175 of 200 jobs")
    jobs.user[:] = 1
    alone = Record.of(jobs)
    assert alone is not None
    assert () == alone.concentrated


@pytest.fixture
def bursts(make_trace: Callable[..., Trace]) -> Trace:
    """A log of two users: one has a job every third day, the other one long session."""
    rare = [{"submit": day * 3 * DAY, "user": 1} for day in range(20)]
    dense = [{"submit": 10 * DAY + minute * 60, "user": 2} for minute in range(100)]
    jobs = sorted([*rare, *dense], key=lambda job: job["submit"])
    more = {"run": 30, "allocated_processors": 1, "requested_time": 60, "wait": 0, "status": 1}
    return make_trace(*({**job, **more} for job in jobs), header="; MaxProcs: 4")


def test_a_replay_says_so_everywhere(bursts: Trace, tmp_path: Path) -> None:
    """The remark is in the notes, the summary, the printed lines, the report and the folder."""
    run = hc.replay(bursts, users="think-time")
    (line,) = run.remarks
    assert line.startswith("concentration: one session holds 100 of 120 jobs (83%)")
    assert line in run.notes
    assert [line] == run.summary()["remarks"]
    assert f"  {line}" in headline(run)
    assert any(line[1:] in sentence for sentence in told(run))
    write_results(run, tmp_path / "run", plots=False)
    assert [line] == read_results(tmp_path / "run").remarks
    assert [line] == json.loads((tmp_path / "run" / "summary.json").read_text())["remarks"]
    rigid = hc.replay(bursts, users="rigid")
    assert [] == list(rigid.remarks)
    assert "remarks" not in rigid.summary()


def test_a_runaway_model_says_so(bursts: Trace) -> None:
    """Users who come every day submit many times the jobs of users who rarely came."""
    run = hc.replay(bursts, users="shmueli-feitelson")
    assert any(line.startswith("load: shmueli-feitelson users submit") for line in run.remarks)


@pytest.mark.traces
def test_kth_has_no_remark(kth: Trace) -> None:
    """An ordinary log and ordinary users have none."""
    assert [] == list(hc.replay(kth, users="think-time").remarks)
