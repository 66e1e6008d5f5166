"""What the tests share: real traces, and small tables of jobs written as tuples.

Fixtures that build something return a function and live as long as the session, so that property
tests may use them too.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.environment.engine.attempts import RECORDED
from hpcrowd.environment.header import Header
from hpcrowd.environment.jobs import OUTCOME, UNKNOWN, Column, JobTable, State
from hpcrowd.environment.traces.formats.swf import read_swf
from hpcrowd.environment.traces.trace import FIELDS, Trace
from hypothesis import settings

from tests.support.places import ROOT

# Other processes that tests start run the code next to the tests, too.
os.environ["PYTHONPATH"] = str(ROOT / "src")

# Programs that tests start handle signals, even if the tests run in the background or under nohup.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# They need not compile every source again, even if no bytecode is to be kept.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="hpcrowd-tests-")
    atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)

# How wide the terminal is that runs the tests is nothing that they may depend on.
os.environ.pop("COLUMNS", None)

settings.register_profile("hpcrowd", deadline=None, print_blob=True, max_examples=100)
settings.load_profile("hpcrowd")


@pytest.fixture(scope="session", autouse=True)
def audited_runs():
    """Audit whatever a simulation of one machine of nodes has done, each time it stops."""
    from hpcrowd.environment.simulation import Simulation

    from tests.environment.machine.audit import audit

    run = Simulation.run

    def audited(self, *arguments, **options):
        found = run(self, *arguments, **options)
        scheduler = self.cluster.engine.scheduler
        if hasattr(scheduler, "ledger") and len(self.clusters) == 1:
            audit(scheduler.machine, since_it_began(self), held_in(self))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulation, "run", audited)
        yield


def held_in(run):
    """Return the ledger of a run; the table knows nothing of runs until one ended as recorded."""
    ended = [one for one in run.cluster.attempts if one.cause == RECORDED]
    ends = {(one.row, one.start): one.end for one in ended}
    last = {one.row: one.start for one in ended}
    return [
        replace(one, end=ends.get((one.row, one.start), one.end), submitted=UNKNOWN)
        if one.start <= last.get(one.row, UNKNOWN)
        else one
        for one in run.cluster.engine.scheduler.ledger
    ]


def since_it_began(run):
    """Return the table of a run without jobs that were over when it began from a state."""
    began, jobs = run.cluster.engine.began, run.jobs
    past = (jobs.recorded_end != UNKNOWN) & (jobs.end == jobs.recorded_end) & (jobs.end <= began)
    if began and past.any():
        jobs = jobs.copy()
        for column in OUTCOME:
            jobs.column(column)[past] = UNKNOWN
        jobs.column(Column.STATE)[past] = State.UNFINISHED
    return jobs


@pytest.fixture(scope="session")
def root():
    """Return the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def traces():
    """Return the folder of real traces; skip the test when there is none."""
    folder = Path(os.environ.get("HPCROWD_TRACES", ROOT.parent / "shared" / "traces"))
    if not any(folder.glob("*.swf.gz")):
        pytest.skip(f"no real traces in {folder}; set HPCROWD_TRACES to a folder of *.swf.gz")
    return folder


@pytest.fixture(scope="session")
def read_trace(traces):
    """Return a function that reads a real trace by the beginning of its name, each only once."""
    read: dict[str, Trace] = {}

    def reader(name):
        if name not in read:
            found = sorted(traces.glob(f"{name}*.swf.gz"))
            if not found:
                pytest.skip(f"no trace {name}*.swf.gz in {traces}")
            read[name] = read_swf(found[0])
        return read[name]

    return reader


@pytest.fixture(scope="session")
def kth(read_trace):
    """Return the trace KTH-SP2-1996-2.1-cln."""
    return read_trace("KTH-SP2-1996-2.1-cln")


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """Return an empty folder to be in and to import from, whose modules are forgotten again."""
    monkeypatch.chdir(tmp_path)
    path, loaded = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - loaded:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture(scope="session")
def make_jobs():
    """Return a function that makes jobs from (submit, run, processors[, requested[, user]])."""

    def make(*tuples):
        """Jobs are numbered from 1 and recorded as if none had waited; user 1 unless given."""
        jobs = JobTable(len(tuples))
        jobs.number[:] = np.arange(1, len(tuples) + 1)
        for row, (submit, run, processors, *more) in enumerate(tuples):
            requested, user = (*more, *(run, 1)[len(more) :])
            jobs.processors[row] = processors
            jobs.run_time[row] = run
            jobs.requested_time[row] = requested
            jobs.user[row] = user
            jobs.recorded_submit[row] = jobs.recorded_start[row] = submit
            jobs.recorded_end[row] = submit + run
        return jobs

    return make


@pytest.fixture(scope="session")
def make_trace():
    """Return a function that makes a trace; each job is a dict of fields, the rest is unknown."""

    def make(*jobs, header=""):
        columns = {name: np.full(len(jobs), -1.0) for name in FIELDS}
        columns["number"] = np.arange(1, len(jobs) + 1)
        for row, job in enumerate(jobs):
            for name, value in job.items():
                columns[name][row] = value
        lines = [line.encode() for line in header.splitlines()]
        return Trace(Header(lines), columns, source="made")

    return make


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the command line in this process: (exit code, standard output, standard error)."""

    def run(*arguments):
        from hpcrowd.scenarios.cli import main

        monkeypatch.setattr(sys, "argv", ["hpcrowd", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return run


@pytest.fixture(scope="session")
def slurm_dumps():
    """Return the folder of a real Slurm's dumps; skip the test when there is none."""
    folder = ROOT.parent / "shared" / "slurm" / "dumps"
    if not folder.is_dir():
        pytest.skip(f"no dumps of a real Slurm in {folder}")
    return folder


@pytest.fixture(scope="session")
def referee_runs():
    """Return the folder of recorded runs of a real Slurm; skip the test when there is none."""
    folder = ROOT.parent / "shared" / "slurm" / "referee"
    if not (folder / "runA" / "plan.csv").is_file():
        pytest.skip(f"no recorded runs in {folder}")
    return folder


@pytest.fixture(scope="module")
def browser():
    """A browser without a network."""
    pytest.importorskip("playwright", reason="no playwright: pip install 'hpcrowd[dev]'")
    from tests.support.page import started_browser

    with started_browser() as found:
        yield found


@pytest.fixture
def reader(browser, address):
    """A user who has just opened the page at a busy second; nothing may go wrong in the browser."""
    from tests.support.page import BUSY, Reader

    found = Reader(browser, address, f"?at={BUSY}")
    yield found
    found.close()
