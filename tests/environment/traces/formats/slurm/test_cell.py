"""A real Slurm, brought up on this machine, prints the accounting that is read.

Needs root and Debian's packages slurm-wlm, slurmdbd, munge and mariadb-server. The cluster has its
own folder, ports, key and database, so another one on the machine is not touched.
"""

import os
import re
import shutil
import socket
import subprocess
import time

import numpy as np
import pytest
from hpcrowd import read_trace
from hpcrowd.environment.holds.recorded import recorded_rules
from hpcrowd.environment.traces.trace import jobs_from_trace

from tests.environment.traces.formats.cell_cases import ADA, BOB, LONGEST, Cell, free_ports
from tests.support.places import ROOT
from tests.support.sacct import UTC

#: Programs that are needed.
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mungekey", "mariadbd", "sbatch", "sacct")

#: Rounds of Slurm's scheduler that may pass before a job is found to be eligible, s.
ROUNDS = 15

CONFIGURATION = """ClusterName=cell | SlurmctldHost={host}(127.0.0.1) | SlurmUser=slurm |
SlurmctldPort={controller} | AuthType=auth/munge | CryptoType=crypto/munge |
AuthInfo=socket={root}/munge.sock | StateSaveLocation={root}/state |
SlurmdSpoolDir={root}/node.%n | SlurmctldPidFile={root}/slurmctld.pid |
SlurmdPidFile={root}/slurmd.%n.pid | SlurmctldLogFile={root}/slurmctld.log |
SlurmdLogFile={root}/slurmd.%n.log | ProctrackType=proctrack/linuxproc |
TaskPlugin=task/none | JobAcctGatherType=jobacct_gather/linux | MpiDefault=none |
SwitchType=switch/none | SlurmdParameters=config_overrides | KillWait=2 | MinJobAge=3600 |
SelectType=select/cons_tres | SelectTypeParameters=CR_Core | SchedulerType=sched/backfill |
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0 |
PriorityType=priority/basic | AccountingStorageType=accounting_storage/slurmdbd |
AccountingStorageHost=127.0.0.1 | AccountingStoragePort={accounting} |
AccountingStoragePass={root}/munge.sock |
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4 |
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4 |
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60 DefaultTime=5
""".replace(" |\n", "\n").replace(" | ", "\n")

ACCOUNTING = """DbdHost=localhost | DbdPort={accounting} | SlurmUser=slurm | AuthType=auth/munge |
AuthInfo=socket={root}/munge.sock | StorageType=accounting_storage/mysql |
StorageHost=localhost | StorageUser=slurm | StorageLoc=cell | PidFile={root}/slurmdbd.pid |
LogFile={root}/slurmdbd.log
""".replace(" |\n", "\n").replace(" | ", "\n")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(program) is None for program in PROGRAMS),
        reason="needs root and the packages slurm-wlm, slurmdbd, munge and mariadb-server",
    ),
]


class Slurm(Cell):
    """A cluster of two nodes with four processors each, with its own accounting."""

    files = ("slurmd.n[12].pid", "slurmctld.pid", "slurmdbd.pid", "munged.pid")

    def __init__(self, root):
        super().__init__(root)
        self.database: subprocess.Popen[bytes] | None = None
        self.env |= {"SLURM_CONF": str(root / "slurm.conf"), "TZ": "UTC",
                     "MYSQL_UNIX_PORT": str(root / "db" / "db.sock")}  # fmt: skip

    def start(self):
        """Start the key server, the database, and Slurm's daemons."""
        root, ports = self.root, free_ports(4)
        names = ("controller", "accounting", "first", "second")
        told = {"root": root, "host": socket.gethostname().partition(".")[0]}
        told |= dict(zip(names, ports, strict=True))
        (root / "slurm.conf").write_text(CONFIGURATION.format(**told))
        (root / "slurmdbd.conf").write_text(ACCOUNTING.format(**told))
        (root / "slurmdbd.conf").chmod(0o600)
        for name in ("state", "node.n1", "node.n2", "db", "temporary"):
            (root / name).mkdir()
        for name in ("db", "temporary"):
            shutil.chown(root / name, "mysql", "mysql")
        for name in ("", "state", "slurmdbd.conf"):
            shutil.chown(root / name, "slurm", "slurm")
        self.run("mungekey", "--create", f"--keyfile={root / 'munge.key'}")
        self.run(
            "munged", f"--socket={root / 'munge.sock'}", f"--key-file={root / 'munge.key'}",
            f"--pid-file={root / 'munged.pid'}", f"--log-file={root / 'munged.log'}",
            f"--seed-file={root / 'munge.seed'}", "--force",
        )  # fmt: skip
        # Two servers that share a folder for temporary tables take each other's.
        data, place = f"--datadir={root / 'db'}", root / "db" / "db.sock"
        temporary = f"--tmpdir={root / 'temporary'}"
        self.run("mariadb-install-db", "--no-defaults", "--user=mysql", data, temporary,
                 "--auth-root-authentication-method=socket")  # fmt: skip
        with (root / "mariadbd.log").open("wb") as log:
            self.database = subprocess.Popen(
                ["mariadbd", "--no-defaults", "--user=mysql", data, temporary, f"--socket={place}",
                 f"--pid-file={root / 'db' / 'mariadbd.pid'}", "--skip-networking"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        sql = "create user slurm@localhost identified via unix_socket; "
        sql += "grant all on cell.* to slurm@localhost"
        self.until("mariadb", "-S", place, "-e", "select 1")
        self.run("mariadb", "-S", place, "-e", sql)
        self.run("slurmdbd")
        self.until("sacctmgr", "-n", "show", "cluster")
        self.run("sacctmgr", "-i", "add", "cluster", "cell")
        self.run("slurmctld")
        self.until("scontrol", "ping")
        for node in ("n1", "n2"):
            self.run("slurmd", "-N", node)
        self.run("sacctmgr", "-i", "add", "account", "science")
        for user in (ADA, BOB):
            self.run("sacctmgr", "-i", "add", "user", user, "account=science")
        end = time.monotonic() + LONGEST
        while "idle" not in (shown := self.run("sinfo", "-h", "-o", "%t %D")):
            assert time.monotonic() < end, shown
            time.sleep(0.2)

    def submit(self, *options, user=ADA, sleep=1, ends=0):
        """Submit a job that sleeps and ends with a code; return its number."""
        command = f"--wrap=sleep {sleep}; exit {ends}"
        told = ("--parsable", "-o", "/dev/null", "-D", "/tmp", "-t", "1", *options, command)
        return self.run("sbatch", *told, user=user).strip().partition(";")[0]

    def states(self):
        """State of each job or task in the queue."""
        lines = self.run("squeue", "-h", "-o", "%i %T").splitlines()
        return {line.split()[0]: line.split()[1] for line in lines}

    def stop(self):
        """Stop the daemons, then the database."""
        super().stop()
        if self.database is not None:
            self.database.terminate()
            self.database.wait(LONGEST)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """What sacct prints after jobs of many kinds, in several files; and their numbers."""
    folder = tmp_path_factory.mktemp("printed")
    with Slurm.started() as cell:
        number = load(cell)
        dump(cell, folder)
        look(cell, folder)
        yield folder, number


def load(cell):
    """Submit jobs of many kinds, wait until they are over, and return their numbers."""
    one: dict[str, str] = {}
    one["long"] = cell.submit("-n", 4, "-J", "long", sleep=60)
    one["plain"] = cell.submit("-n", 2, "-J", "plain")
    one["odd"] = cell.submit("-J", "odd|name\nof two lines")
    one["first"] = cell.submit("-J", "first", sleep=3)
    one["second"] = cell.submit("-d", f"afterok:{one['first']}", "-J", "second")
    one["third"] = cell.submit("-d", f"afterany:{one['second']}", "-J", "third")
    one["fails"] = cell.submit("-J", "fails", ends=3)
    one["never"] = cell.submit("-d", f"afterok:{one['fails']}", "-J", "never")
    one["anyway"] = cell.submit("-d", f"afternotok:{one['fails']}", "-J", "anyway")
    one["array"] = cell.submit("-a", "0-5%2", "-J", "array")
    one["ring"] = cell.submit("-J", "ring", sleep=3, user=BOB)
    one["single"] = cell.submit("-d", "singleton", "-J", "ring", user=BOB)
    one["begin"] = cell.submit("--begin=now+8", "-J", "begin")
    one["held"] = cell.submit("-H", "-J", "held")
    one["gone"] = cell.submit("-H", "-J", "gone")
    cell.run("scancel", one["gone"])
    one["parts"] = cell.submit("-n", 2, ":", "-n", 1)
    cell.wait(one["long"])
    cell.run("scontrol", "requeue", one["long"])
    cell.wait(one["long"], "PENDING")
    cell.run("scontrol", "update", f"JobId={one['long']}", "StartTime=now")
    time.sleep(1)  # it is not released in the second of its submission
    cell.run("scontrol", "release", one["held"])
    time.sleep(2)
    cell.run("scancel", one["never"])
    cell.wait(one["long"])
    time.sleep(1)
    cell.run("scontrol", "suspend", one["long"])
    time.sleep(3)
    cell.run("scontrol", "resume", one["long"])
    time.sleep(1)
    cell.run("scancel", one["long"])
    cell.wait()
    time.sleep(3)  # the database is written behind
    return one


def dump(cell, folder):
    """Print the accounting as the guide says, and in other ways."""
    guide = (ROOT / "docs" / "guides" / "slurm.md").read_text()
    found = re.search(r"^(sacct -a .*--format=\w+,.*) > jobs.txt$", guide, re.M)
    assert found is not None
    command = found[1].split()
    (folder / "guide.txt").write_text(cell.run(*command))
    (folder / "semicolon.txt").write_text(cell.run(*command, "--delimiter=;"))
    (folder / "jobs.json").write_text(cell.run(*command[:-1], "--json"))


def look(cell, folder):
    """Print what waits and runs in all ways, with jobs that wait for several reasons."""
    runs = cell.submit("-n", 4, "-J", "runs", sleep=60)
    cell.wait(runs)
    cell.submit("-n", 8, "--exclusive", "-J", "waits", user=BOB)
    cell.submit("-H", "-J", "held")
    cell.submit("-d", f"afterok:{runs}", "-J", "after")
    cell.submit("-a", "0-4%1", "--begin=now+1hour", "-J", "array")
    cell.submit("-n", 8, ":", "-n", 1)
    time.sleep(2)
    for name, command in {
        "squeue.json": ("squeue", "--json"),
        "squeue.txt": ("squeue", "-a", "-r", "-o", "%all"),
        "scontrol.txt": ("scontrol", "-a", "show", "job"),
        "lines.txt": ("scontrol", "-a", "-o", "show", "job"),
    }.items():
        (folder / name).write_text(cell.run(*command))
    cell.run("scancel", "-u", ADA)
    cell.run("scancel", "-u", BOB)
    cell.wait()


def place_of(trace):
    """Return the row of each job by its number in Slurm."""
    return {one: row for row, one in enumerate(trace.extra["job_id"].tolist())}


def test_real_accounting(jobs):
    """All ways of printing it give the same jobs, which are those that were submitted."""
    folder, number = jobs
    guide, *others = (
        read_trace(folder / name, options=UTC)
        for name in ("guide.txt", "semicolon.txt", "jobs.json")
    )
    place = place_of(guide)
    tasks = {f"{number['array']}_{task}" for task in range(6)}
    assert set(place) == {*number.values(), *tasks} - {number["array"]}
    for trace in others:
        there = place_of(trace)
        assert set(there) == set(place)
        rows = [there[one] for one in place]
        for field in ("submit", "wait", "run", "allocated_processors", "requested_processors",
                      "requested_time", "status"):  # fmt: skip
            assert guide[field].tolist() == trace[field][rows].tolist(), field
    state = guide.extra["final_state"]
    assert "FAILED" == state[place[number["fails"]]]
    assert {"CANCELLED"} == {state[place[number[name]]] for name in ("long", "gone", "never")}
    assert -1 == guide["run"][place[number["gone"]]] == guide["run"][place[number["never"]]]
    assert 3 == guide["allocated_processors"][place[number["parts"]]]
    assert "1" == guide.extra["restarts"][place[number["long"]]]
    assert int(guide.extra["suspended"][place[number["long"]]]) in range(2, 6)
    names = guide.names["executable"]
    assert "odd|name\nof two lines" == names[int(guide["executable"][place[number["odd"]]])]


def test_jobs_are_eligible_when_rules_say(jobs):
    """Dependencies, throttles, begin times and holds are those of the real scheduler."""
    folder, number = jobs
    trace = read_trace(folder / "guide.txt", options=UTC)
    made = jobs_from_trace(trace)
    rules = recorded_rules(trace, made.jobs, made.source_row)
    assert rules is not None
    ids = trace.extra["job_id"][made.source_row].tolist()
    row = {one: ids.index(text) for one, text in number.items() if text in ids}
    later = np.array([int(text or 0) for text in trace.extra["eligible"][made.source_row]])
    eligible, end = made.jobs.recorded_submit + later, made.jobs.recorded_end
    parents = {child: [one.row for one in of] for child, of in rules.parents.items()}
    assert {
        row["second"]: [row["first"]],
        row["third"]: [row["second"]],
        row["anyway"]: [row["fails"]],
    } == parents
    waits = [(child, other) for child, (other,) in parents.items()]
    waits.append((row["single"], row["ring"]))
    for child, other in waits:
        assert 0 <= eligible[child] - end[other] <= ROUNDS, ids[child]
    assert {row["single"]} <= set(rules.singletons)
    assert 8 == rules.delay[row["begin"]]
    assert rules.delay[row["held"]] > 0
    assert 6 == len(rules.array)
    assert [2] == list(rules.throttle.values())


def test_all_ways_to_look_at_it_agree(jobs):
    """Each shows the same jobs that wait and run, and no end of them."""
    shown = []
    for file in ("squeue.json", "scontrol.txt", "lines.txt", "squeue.txt"):
        trace = read_trace(jobs[0] / file, options=UTC)
        unix = trace.header.integer("UnixStartTime")
        assert unix is not None
        words = (trace.extra[name] for name in ("job_id", "final_state", "dependency", "exclusive"))
        numbers = (trace[name] for name in ("requested_processors", "requested_time", "run"))
        now = zip(*words, trace["submit"] + float(unix), *numbers, strict=True)
        shown.append(sorted(job for job in now if job[1] in ("PENDING", "RUNNING")))
    assert 10 == len(shown[0])
    assert ["PENDING"] * 9 + ["RUNNING"] == sorted(state for _, state, *_ in shown[0])
    assert {-1} == {run for *_, run in shown[0]}
    assert all(one == shown[0] for one in shown[1:])
