"""Remarks on runs whose load leaves the range of the record, and on concentrated records."""

import json

import hpcrowd as hc
import numpy as np
from hpcrowd.agents.work.recorded import Work
from hpcrowd.analysis.accounts.record import LEAST_JOBS, Record
from hpcrowd.analysis.report.runs import told
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.run import headline
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import JobTable

#: Days of the log, jobs a day, and the processors and seconds of each.
DAYS, PER_DAY, PROCESSORS, RUN = 50, 4, 2, HOUR


def log(days=DAYS, each=PER_DAY, run=RUN):
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


def recorded(jobs, **more):
    """The account of a record."""
    found = Record.of(jobs, **more)
    assert found is not None
    return found


def remarks(run, **more):
    """The remarks on a run of the log."""
    return recorded(log()).remarks(run, "busy", **more)


def test_load_beyond_the_range():
    """The model, the factor and what to do are named; jobs and work count by themselves."""
    assert [] == remarks(log()) == remarks(log(each=2 * PER_DAY, run=RUN // 2))
    (line,) = remarks(log(each=3 * PER_DAY, run=RUN // 3))
    assert "load: busy users submit 12.0 jobs a day, 3 times the 4.0 of the record, " in line
    assert "whose range is 0.5 to 2 times as much" in line
    (line,) = remarks(log(run=3 * RUN))
    assert "submit 24.0 processor-hours a day, 3 times the 8.0" in line
    few = log()
    few.submit[::2] = few.submit[::4].repeat(2) + DAYS * DAY
    few.submit[1::4] += DAYS * DAY
    assert "submit 1.0 jobs a day, 0.25 times" in remarks(few)[0]


def test_what_is_not_judged():
    """Short logs, a run that submits nothing, and work of which one job is half."""
    assert Record.of(log(days=LEAST_JOBS // PER_DAY - 1)) is None
    nothing, jobs = log(), log()
    nothing.submit[:] = -1
    assert [] == remarks(nothing)
    jobs.run_time[100] = 200 * RUN
    assert not recorded(jobs).work.any()
    assert [] == recorded(jobs).remarks(log(), "busy")
    # What the record has on some days in a row is in its range.
    varied, busy = log(), log(days=1, each=30)
    varied.recorded_submit[:40] = np.arange(40) * HOUR // 10
    busy.submit[:] = 0
    assert [] == recorded(varied).remarks(busy, "busy")
    assert "hours" in remarks(busy)[0]
    # Twice the users may submit four times the jobs; the days are those of the run.
    double = log(each=3 * PER_DAY)
    assert "jobs a day, 3 times the 4.0 and 24.0 processor-hours" in remarks(double, days=DAYS)[0]
    assert [] == remarks(double, days=DAYS, factor=2.0)


def test_concentration():
    """A session counts for users who think; a user if there are others, and no such session."""
    jobs = log()
    Work.of(jobs)
    jobs.session[:80] = 0
    (line,) = recorded(jobs).concentrated
    assert line.startswith("concentration: one session holds 80 of 200 jobs (40%); think times")
    assert () == recorded(jobs, thinks=False).concentrated
    jobs = log()
    jobs.user[:150] = 1
    (line, *_) = recorded(jobs).concentrated
    assert line.startswith("concentration: one user submitted 175 of 200 jobs")
    jobs.user[:] = 1
    assert () == recorded(jobs).concentrated


def test_a_replay_says_so_everywhere(make_trace, tmp_path):
    """The remark is in the notes, the summary, the printed lines, the report and the folder."""
    rare = [(day * 3 * DAY, 1) for day in range(20)]
    jobs = sorted([*rare, *((10 * DAY + minute * 60, 2) for minute in range(100))])
    more = {"run": 30, "allocated_processors": 1, "requested_time": 60, "wait": 0, "status": 1}
    rows = ({"submit": at, "user": user, **more} for at, user in jobs)
    bursts = make_trace(*rows, header="; MaxProcs: 4")
    run = hc.replay(bursts, users="think-time")
    (line,) = run.remarks
    assert line.startswith("concentration: one session holds 100 of 120 jobs (83%)")
    assert f"  {line}" in headline(run)
    assert any(line[1:] in sentence for sentence in told(run))
    write_results(run, tmp_path / "run", plots=False)
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())["remarks"]
    assert [line] == run.summary()["remarks"] == read_results(tmp_path / "run").remarks == stored
    rigid = hc.replay(bursts, users="rigid")
    assert ([], False) == (list(rigid.remarks), "remarks" in rigid.summary())
