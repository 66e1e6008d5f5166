"""A real Grid Engine, brought up on this machine, writes the accounting file that is read.

Needs root and Debian's packages gridengine-master, gridengine-exec and gridengine-client. The cell
has its own folder, ports and spool, so another one on the machine is not touched.
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hpcrowd import read_trace
from hpcrowd.environment.traces.formats.gridengine import GRIDENGINE
from hpcrowd.formats import FormatOptions

from tests.environment.traces.formats.cell_cases import ADA, BOB, LONGEST, Cell, free_ports
from tests.environment.traces.formats.format_cases import losses_are_exact, shown

#: Programs of the packages.
PROGRAMS = Path("/usr/lib/gridengine")

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


class GridEngine(Cell):
    """A cell of Grid Engine with one queue of four slots on this host."""

    files = ("spool/execd/*/execd.pid", "spool/qmaster/qmaster.pid")

    def __init__(self, root):
        super().__init__(root)
        self.host = socket.gethostname()
        master, execd = map(str, free_ports(2))
        self.env |= {
            "SGE_ROOT": str(root), "SGE_CELL": "default", "SGE_QMASTER_PORT": master,
            "SGE_EXECD_PORT": execd, "SGE_CLUSTER_NAME": f"p{master}",
        }  # fmt: skip

    def changed(self, show, change, name, values):
        """Show a configuration, and set it with some values changed."""
        lines = self.run("qconf", show).replace("\\\n", " ").splitlines()
        told = dict(line.split(None, 1) for line in lines if line[:1] not in ("#", ""))
        file = self.root / name
        file.write_text("".join(f"{key} {value}\n" for key, value in {**told, **values}.items()))
        self.run("qconf", change, file)

    def start(self):
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

    def start_master(self, messages):
        """Start the master, and wait until it answers; again, if it ended before it did."""
        for _ in range(3):
            self.run(PROGRAMS / "sge_qmaster")
            if self.until("qconf", "-sh", longest=LONGEST / 4, needed=False):
                return
        pytest.fail(messages.read_text() if messages.exists() else "the master said nothing")

    def submit(self, user, *options):
        """Submit a job; return its number."""
        told = ("-terse", "-o", "/dev/null", "-e", "/dev/null", "-wd", "/tmp", "-S", "/bin/sh")
        return self.run("qsub", *told, *options, user=user).strip().partition(".")[0]

    def states(self):
        """State of each job in the queue; of several tasks the last one."""
        lines = self.run("qstat", "-u", "*").splitlines()[2:]
        return {line.split()[0]: line.split()[4] for line in lines}

    def stop(self):
        """Ask the daemons to stop, and then stop them."""
        for command in (("qconf", "-ke", "all"), ("qconf", "-km")):
            subprocess.run(command, env=self.env, check=False, timeout=60, capture_output=True)
        super().stop()


def load(cell):
    """Run jobs of many kinds, and return the accounting file."""
    script, parallel = cell.root / "work.sh", cell.root / "parallel.sh"
    script.write_text("sleep $1\nexit ${2:-0}\n")
    parallel.write_text("qrsh -inherit localhost sleep 1 &\nwait\n")
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
    cell.run("qdel", cell.submit(BOB, "-N", "waiting", "-h", script, 1), user=BOB)
    running = cell.submit(BOB, "-N", "running", "-p", -100, script, 60)
    cell.wait(running, "r")
    cell.run("qdel", running, user=BOB)
    again = cell.submit(ADA, "-N", "again", "-r", "y", script, 4)
    cell.wait(again, "r")
    time.sleep(1)
    cell.run("qmod", "-rj", again)
    for job in (job for job, state in cell.states().items() if state.startswith("E")):
        cell.run("qdel", job)
    cell.wait()
    time.sleep(3)  # the file is written once a second
    return cell.root / "default" / "common" / "accounting"


def test_real_accounting():
    """It is found from its content, and has the jobs with what they asked for and how they ended.

    One test, as two cells at a time would use the same groups for their jobs.
    """
    with GridEngine.started() as cell:
        trace = read_trace(load(cell))
    losses_are_exact(trace, GRIDENGINE, FormatOptions())
    names = [name for (name,) in shown(trace, "executable")]
    assert 5 == names.count("array")
    assert 12 == sum(name.startswith("plain") for name in names)
    alone = {"fails", "odd,name=%x", "parallel", "noshell", "nofolder", "limit", "running", "again"}
    alone |= {f"range{number}" for number in range(4)}
    assert {1} == {names.count(name) for name in alone}
    assert 12 + 5 + len(alone) == len(trace)  # but the one that was deleted before it started
    assert {ADA, BOB} == set(trace.names["user"].values())
    ran = trace["run"] >= 0
    assert len(trace) - 2 == int(ran.sum())
    assert (trace["wait"][ran] >= 0).all()
    assert 0 == trace["submit"].min()
    assert trace.processors <= 4
    assert (trace["average_cpu"][trace["run"] >= 1] > 0).all()
    rows = {row[0]: row[1:] for row in shown(
        trace, "executable", "requested_time", "requested_memory", "requested_processors",
        "allocated_processors", "status", "final_state", "exit_code", "project", "restarts", "wait",
    )}  # fmt: skip
    assert (3600, 4 * 2**20, 1, 1, 1, "COMPLETED", "") == rows["plain0"][:7]
    assert (3, -1, 1, 1, 0, "137") == (*rows["limit"][:5], rows["limit"][6])
    for number, granted in enumerate(((2,), (2, 3), (1, 2), (3, 4))):  # as many as were free
        assert rows[f"range{number}"][2] == rows[f"range{number}"][3]
        assert rows[f"range{number}"][3] in granted
    assert (2, 2) == rows["parallel"][2:4]
    assert (0, "FAILED", "3", "grant_7") == rows["fails"][4:8]
    assert (0, "failed 27", "", -1) == (*rows["noshell"][4:7], rows["noshell"][9])
    assert (0, "failed 28", "") == rows["nofolder"][4:7]
    assert (0, "failed 100", "137") == rows["running"][4:7]
    assert (1, "COMPLETED", "", "", "1") == rows["again"][4:9]
