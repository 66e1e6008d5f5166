"""A real Grid Engine, brought up on this machine, writes the accounting file that is read.

Needs root and Debian's packages gridengine-master, gridengine-exec and gridengine-client. The cell
has its own folder, ports and spool, so another one on the machine is not touched.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hpcrowd.environment import FormatOptions, Trace, read_trace
from hpcrowd.environment.traces.formats.gridengine import GRIDENGINE

from tests.environment.traces.formats.format_cases import losses_are_exact, shown

#: Programs of the packages.
PROGRAMS = Path("/usr/lib/gridengine")

#: Accounts of every Debian that submit the jobs.
ADA, BOB = "games", "daemon"

#: Longest time for all jobs together, s.
LONGEST = 90

BOOTSTRAP = """admin_user sgeadmin | default_domain none | ignore_fqdn true |
spooling_method classic | spooling_lib libspoolc |
spooling_params {root}/default/common;{root}/spool/qmaster | binary_path {root}/bin |
qmaster_spool_dir {root}/spool/qmaster | security_mode none | listener_threads 2 |
worker_threads 2 | scheduler_threads 1 | jvm_threads 0
""".replace(" |\n", "\n").replace(" | ", "\n")

#: Schedules at once, and asks for no load.
SCHEDULER = {
    "schedule_interval": "0:0:1", "load_formula": "slots", "flush_submit_sec": "1",
    "flush_finish_sec": "1", "job_load_adjustments": "NONE",
}  # fmt: skip

ENVIRONMENT = """pe_name smp | slots 999 | user_lists NONE | xuser_lists NONE |
start_proc_args /bin/true | stop_proc_args /bin/true | allocation_rule $pe_slots |
control_slaves TRUE | job_is_first_task FALSE | urgency_slots min | accounting_summary FALSE |
qsort_args NONE
""".replace(" |\n", "\n").replace(" | ", "\n")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not (PROGRAMS / "sge_execd").exists()
        or not (PROGRAMS / "sge_qmaster").exists() or not shutil.which("qsub"),
        reason="needs root and the packages gridengine-master, gridengine-exec, gridengine-client",
    ),
]  # fmt: skip


def free_ports(count: int) -> list[str]:
    """Numbers of ports that nobody uses."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cell:
    """A cell of Grid Engine with one queue of four slots on this host."""

    def __init__(self, root: Path) -> None:
        self.root, self.host = root, socket.gethostname()
        master, execd = free_ports(2)
        self.env = {
            **os.environ, "SGE_ROOT": str(root), "SGE_CELL": "default", "HOME": "/tmp",
            "SGE_QMASTER_PORT": master, "SGE_EXECD_PORT": execd, "SGE_CLUSTER_NAME": f"p{master}",
        }  # fmt: skip

    def run(self, *command: object, user: str | None = None) -> str:
        """Run a command as root or another user; return what it prints."""
        group = pwd.getpwnam(user).pw_gid if user else None
        done = subprocess.run(
            [str(word) for word in command], env=self.env, cwd="/tmp", text=True, check=False,
            capture_output=True, timeout=60, user=user, group=group,
            extra_groups=[] if user else None,
        )  # fmt: skip
        assert 0 == done.returncode, (command, done.stdout, done.stderr)
        return done.stdout

    def changed(self, show: str, change: str, name: str, values: dict[str, str]) -> None:
        """Show a configuration, and set it with some values changed."""
        lines = self.run("qconf", show).replace("\\\n", " ").splitlines()
        told = dict(line.split(None, 1) for line in lines if line[:1] not in ("#", ""))
        file = self.root / name
        file.write_text("".join(f"{key} {value}\n" for key, value in {**told, **values}.items()))
        self.run("qconf", change, file)

    def start(self) -> None:
        """Write the files of the cell, and start its two daemons."""
        common, spool = self.root / "default" / "common", self.root / "spool"
        for folder in (common, spool / "qmaster" / "job_scripts", spool / "execd"):
            folder.mkdir(parents=True)
        (self.root / "util").symlink_to("/usr/share/gridengine/util")
        architecture = self.run("/usr/share/gridengine/util/arch").strip()
        for name in ("bin", "lib", "utilbin"):
            (self.root / name).mkdir()
            (self.root / name / architecture).symlink_to(PROGRAMS)
        (common / "bootstrap").write_text(BOOTSTRAP.format(root=self.root))
        (common / "act_qmaster").write_text(self.host + "\n")
        (common / "host_aliases").write_text(f"{self.host} localhost\n")
        default = Path("/usr/share/gridengine/default-configuration").read_text()
        (self.root / "first").write_text(default)
        for path in (self.root, *self.root.rglob("*")):
            if not path.is_symlink():
                shutil.chown(path, "sgeadmin", "sgeadmin")
        resources = Path("/usr/share/gridengine/util/resources")
        for command in (
            ("spoolinit", "classic", "libspoolc", f"{common};{spool / 'qmaster'}", "init"),
            ("spooldefaults", "configuration", self.root / "first"),
            ("spooldefaults", "complexes", resources / "centry"),
            ("spooldefaults", "usersets", resources / "usersets"),
            ("spooldefaults", "managers", "root", "sgeadmin"),
        ):
            self.run(PROGRAMS / command[0], *command[1:], user="sgeadmin")
        self.start_master(spool / "qmaster" / "messages")
        self.run("qconf", "-as", "localhost")
        self.changed("-sconf", "-Mconf", "global", {
            "execd_spool_dir": str(spool / "execd"), "min_uid": "1", "min_gid": "1",
            "mailer": "/bin/true", "load_report_time": "00:00:02",
            "reporting_params": "accounting=true reporting=false flush_time=00:00:01 "
            "joblog=false sharelog=00:00:00",
        })  # fmt: skip
        self.run(PROGRAMS / "sge_execd")
        self.changed("-ssconf", "-Msconf", "scheduler", SCHEDULER)
        (self.root / "smp").write_text(ENVIRONMENT)
        self.run("qconf", "-Ap", self.root / "smp")
        self.changed("-sq", "-Aq", "queue", {
            "qname": "all.q", "hostlist": "localhost", "slots": "4", "pe_list": "smp",
            "load_thresholds": "NONE", "shell": "/bin/sh", "rerun": "TRUE",
        })  # fmt: skip

    def start_master(self, messages: Path) -> None:
        """Start the master, and wait until it answers; again, if it ended before it did."""
        asked = ("qconf", "-sh")
        for _ in range(3):
            self.run(PROGRAMS / "sge_qmaster")
            end = time.monotonic() + LONGEST / 3
            while time.monotonic() < end:
                told = subprocess.run(asked, env=self.env, check=False, capture_output=True)
                if not told.returncode:
                    return
                time.sleep(0.2)
        pytest.fail(messages.read_text() if messages.exists() else "the master said nothing")

    def submit(self, user: str, *options: object) -> str:
        """Submit a job; return its number."""
        told = ("-terse", "-o", "/dev/null", "-e", "/dev/null", "-wd", "/tmp", "-S", "/bin/sh")
        return self.run("qsub", *told, *options, user=user).strip().partition(".")[0]

    def states(self) -> dict[str, str]:
        """State of each job in the queue; of several tasks the last one."""
        lines = self.run("qstat", "-u", "*").splitlines()[2:]
        return {line.split()[0]: line.split()[4] for line in lines}

    def wait(self, job: str | None = None, state: str = "r") -> None:
        """Wait until a job has a state, or until the queue is empty."""
        end = time.monotonic() + LONGEST
        while (states := self.states()) and (job is None or states.get(job) != state):
            assert time.monotonic() < end, states
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop the daemons; those that do not stop when asked to are killed."""
        spool = self.root / "spool"
        files = (*spool.glob("execd/*/execd.pid"), *spool.glob("qmaster/qmaster.pid"))
        processes = [int(file.read_text()) for file in files]
        for command in (("qconf", "-ke", "all"), ("qconf", "-km")):
            subprocess.run(command, env=self.env, check=False, timeout=60, capture_output=True)
        end = time.monotonic() + 20
        while processes := [one for one in processes if Path(f"/proc/{one}").exists()]:
            if time.monotonic() > end:
                os.kill(processes.pop(), signal.SIGKILL)
            time.sleep(0.2)


@pytest.fixture
def accounting() -> Iterator[Path]:
    """The accounting file of a real cell, after jobs of many kinds."""
    root = Path(tempfile.mkdtemp(prefix="cell-"))
    root.chmod(0o755)
    script = root / "work.sh"
    script.write_text("sleep $1\nexit ${2:-0}\n")
    parallel = root / "parallel.sh"
    parallel.write_text("qrsh -inherit localhost sleep 1 &\nwait\n")
    cell = Cell(root)
    try:
        cell.start()
        for number in range(12):
            cell.submit(ADA, "-N", f"plain{number}", "-l", "h_rt=1:00:00,h_vmem=4G", script, 1)
        cell.submit(BOB, "-N", "fails", "-A", "grant_7", script, 0, 3)
        cell.submit(BOB, "-N", "array", "-t", "1-9:2", "-tc", 2, script, 0)
        cell.submit(BOB, "-N", "odd,name=%x", script, 0)
        for number, slots in enumerate(("2", "2-3", "-2", "3-")):
            cell.submit(ADA, "-N", f"range{number}", "-pe", "smp", slots, script, 0)
        cell.submit(ADA, "-N", "parallel", "-pe", "smp", 2, parallel)
        cell.submit(ADA, "-N", "noshell", "-S", "/no/such/shell", script, 0)
        cell.submit(ADA, "-N", "nofolder", "-wd", "/no/such/folder", script, 0)
        cell.submit(ADA, "-N", "limit", "-l", "h_rt=3", script, 60)
        waiting = cell.submit(BOB, "-N", "waiting", "-h", script, 1)
        cell.run("qdel", waiting, user=BOB)
        running = cell.submit(BOB, "-N", "running", "-p", -100, script, 60)
        cell.wait(running)
        cell.run("qdel", running, user=BOB)
        again = cell.submit(ADA, "-N", "again", "-r", "y", script, 4)
        cell.wait(again)
        time.sleep(1)
        cell.run("qmod", "-rj", again)
        for job in (job for job, state in cell.states().items() if state.startswith("E")):
            cell.run("qdel", job)
        cell.wait()
        time.sleep(3)  # the file is written once a second
        yield root / "default" / "common" / "accounting"
    finally:
        cell.stop()
        shutil.rmtree(root, ignore_errors=True)


def test_real_accounting(accounting: Path) -> None:
    """It is found from its content, and has the jobs with what they asked for and how they ended.

    One test, as two cells at a time would use the same groups for their jobs.
    """
    trace = read_trace(accounting)
    all_jobs_are_there(trace)
    they_have_what_they_asked_for(trace)
    they_ended_as_they_did(trace)
    times_are_consistent(trace)
    losses_are_exact(trace, GRIDENGINE, FormatOptions())


def all_jobs_are_there(trace: Trace) -> None:
    """Each job is one job of the trace but those that were deleted before they started."""
    names = [name for (name,) in shown(trace, "executable")]
    assert "waiting" not in names
    assert 5 == names.count("array")
    assert 12 == sum(name.startswith("plain") for name in names)
    alone = {"fails", "odd,name=%x", "parallel", "noshell", "nofolder", "limit", "running", "again"}
    assert {1} == {names.count(name) for name in alone | {f"range{n}" for n in range(4)}}
    assert 12 + 5 + len(alone) + 4 == len(trace)
    assert {ADA, BOB} == set(trace.names["user"].values())


def they_have_what_they_asked_for(trace: Trace) -> None:
    """Limits, memory and slots are those of the submissions."""
    rows = {row[0]: row[1:] for row in shown(
        trace, "executable", "requested_time", "requested_memory", "requested_processors",
        "allocated_processors",
    )}  # fmt: skip
    assert (3600, 4 * 2**20, 1, 1) == rows["plain0"]
    assert (3, -1, 1, 1) == rows["limit"]
    for number, granted in enumerate(((2,), (2, 3), (1, 2), (3, 4))):  # as many as were free
        assert rows[f"range{number}"][2] == rows[f"range{number}"][3]
        assert rows[f"range{number}"][3] in granted
    assert (2, 2) == rows["parallel"][2:]


def they_ended_as_they_did(trace: Trace) -> None:
    """Ends, exit codes and accounts are there; a job that ran again has its last run."""
    rows = {row[0]: row[1:] for row in shown(
        trace, "executable", "status", "final_state", "exit_code", "project", "restarts", "wait"
    )}  # fmt: skip
    assert (1, "COMPLETED", "") == rows["plain0"][:3]
    assert (0, "FAILED", "3", "grant_7") == rows["fails"][:4]
    assert (0, "failed 27", "") == rows["noshell"][:3]
    assert (0, "failed 28", "") == rows["nofolder"][:3]
    assert -1 == rows["noshell"][5]
    assert (0, "137") == (rows["limit"][0], rows["limit"][2])
    assert (0, "failed 100", "137") == rows["running"][:3]
    assert (1, "COMPLETED", "", "", "1") == rows["again"][:5]


def times_are_consistent(trace: Trace) -> None:
    """Jobs that started waited and ran for as long as their records say, on four slots."""
    ran = trace["run"] >= 0
    assert len(trace) - 2 == int(ran.sum())
    assert (trace["wait"][ran] >= 0).all()
    assert 0 == trace["submit"].min()
    assert trace.processors <= 4
    assert (trace["average_cpu"][trace["run"] >= 1] > 0).all()
