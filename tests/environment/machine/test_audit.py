"""The audit of finished runs finds each kind of fault in tables and ledgers that are wrong."""

from dataclasses import replace
from typing import Any

import pytest
from hpcrowd.environment.errors import SchedulerError
from hpcrowd.environment.jobs import UNKNOWN, Column, State
from hpcrowd.environment.machine.model import Account, Limits, Machine, Partition, Qos, Reservation
from hpcrowd.environment.machine.selection import Share
from hpcrowd.environment.schedulers.slurm.queue import Tenure

from tests.environment.machine.audit import audit, faults
from tests.environment.machine.machine_cases import table

#: Two nodes of four cores, 100 MB and two GPUs, and one without; jobs may use all.
NODES = (
    {"name": "g[1-2]", "cores": 4, "memory": 100, "gpus": {"a": 1, "b": 1}, "features": ("fast",)},
    {"name": "n1", "cores": 4, "memory": 100},
)


def share(node=0, cores=1, memory=0, gpus=(0, 0)):
    """Return what a job holds of a node."""
    return Share(node, cores, memory, gpus)


def site(*limits, **more):
    """Return the machine; with limits of the QOS ``normal``, if they are given."""
    qos = tuple(Qos(name="normal", limits=one) for one in limits)
    how: dict[str, Any] = {"qos": qos, "scheduling": {"enforce_limits": True}}
    return Machine(nodes=NODES, **how | more)


def ran(*jobs):
    """Return a table of completed jobs and its ledger.

    Each says what it ``asks``; when it started, ``start``; what it ``holds``; ``partition``.
    """
    made, at = table(*({"run": 10, **job} for job in jobs))
    ledger = []
    for row, job in enumerate(jobs):
        start, holds = job.get("start", 0), job.get("holds", share())
        made.matrix[Column.SUBMIT, row] = made.matrix[Column.ENQUEUED, row] = at[row]
        made.matrix[Column.START, row] = start
        made.matrix[Column.END, row] = start + made.run_time[row]
        made.matrix[Column.STATE, row] = State.COMPLETED
        ledger.append(
            Tenure(row, int(at[row]), int(at[row]), start, UNKNOWN,
                   tuple(holds) if isinstance(holds, list) else (holds,),
                   "main", job.get("partition", "all"), job.get("pauses", []))
        )  # fmt: skip
        made.matrix[Column.PAUSED, row] = job.get("suspended", UNKNOWN)
    return made, ledger


RES = Reservation(name="kept", start=50, end=100, nodes=("g1",), users=("u2",))
PARTS = (
    Partition(name="all", default=True),
    Partition(name="one", nodes=("n1",), max_nodes=1, max_time=20, max_cores_per_node=2,
              deny_accounts=("b",)),
    Partition(name="down", up=False),
    Partition(name="whole", exclusive=True),
    Partition(name="wide", min_nodes=2),
)  # fmt: skip
ACCOUNTS = (
    Account(account="a", limits=Limits(group_jobs=1, group_submit=2)),
    Account(account="b", limits=Limits(group_tres={"cpu": 3})),
    Account(account="a", user="u1", limits=Limits(max_jobs=3, max_submit=1)),
    Account(account="a", user="u2"),
    Account(account="b", user="u3", limits=Limits(max_wall=5, max_tres={"node": 1})),
)
ONE, DOWN, WIDE = ({"partition": name, "partitions": name} for name in ("one", "down", "wide"))
ANY, PARTED, OWNED = site(), site(partitions=PARTS), site(accounts=ACCOUNTS)
KEPT, HALF = (
    site(reservations=(RES.model_copy(update={"cores_per_node": cores}),)) for cores in (None, 2)
)
WHOLE, FOUR = share(0, 4, 0, (1, 1)), share(0, 4)
TWO = {"holds": share(0, 2), "cores": 2}


@pytest.mark.parametrize(
    ("machine", "jobs", "fault"),
    [
        (ANY, [{"holds": FOUR}, {}], "g1: 5 of 4 cores in use"),
        (ANY, [{"holds": share(memory=60)}] * 2, "g1: 120 of 100 MB in use"),
        (ANY, [{"holds": share(gpus=(1, 0))}] * 2, "g1: 2 of 1 GPUs a in use"),
        (ANY, [{"exclusive": 1, "holds": WHOLE}, {"start": 5, "holds": share(0, 0)}],
         "a job that asked for all is not alone"),
        (ANY, [{"exclusive": 1}], "holds a part of g1, not the whole node"),
        (PARTED, [{"partition": "whole", "partitions": "whole"}], "holds a part of g1"),
        (ANY, [{"partition": "other"}], "ran in partition 'other', which there is not"),
        (ANY, [{"holds": share(3)}], "holds nodes [3], of 3"),
        (ANY, [{"holds": [share(), share()]}], "holds a node twice"),
        (PARTED, [{"partition": "one", "holds": share(2)}], "and asked for all"),
        (PARTED, [ONE], "ran on g1, not in partition one"),
        (PARTED, [DOWN], "started in partition down, which is down"),
        (PARTED, [WIDE], "ran on 1 nodes, against the limits of partition wide"),
        (PARTED, [ONE | {"holds": share(2), "limit": 30}], "limit 30 s, above 20 s of part"),
        (PARTED, [ONE | {"holds": share(2, 3)}], "3 cores of n1: above 2"),
        (site(partitions=PARTS, accounts=ACCOUNTS), [ONE | {"holds": share(2), "account": "b"}],
         "account b and QOS  may not use partition one"),
        (ANY, [{"features": "fast", "holds": share(2)}], "ran on n1, which is not fast"),
        (ANY, [{"cores": 2}], "holds 1 cores, and asked for 2"),
        (ANY, [{"nodes": 2}], "holds 1 nodes, and asked for 2"),
        (ANY, [{"max_nodes": 1, "holds": [share(0), share(1)]}], "holds 2 nodes"),
        (ANY, [{"cores_per_task": 2, "cores": 2, "holds": share(0, 3)}], "g1: not tasks of 2"),
        (ANY, [{"tasks_per_node": 1, "holds": share(0, 2)}], "more than 1 tasks"),
        (ANY, [{"gpus": 1, "gpu_type": "a", "holds": share(gpus=(0, 1))}], "holds [0] GPUs a"),
        (ANY, [{"gpus_per_node": 1, "holds": [share(0, 1, 0, (1, 0)), share(2)]}], "[1, 0] GPUs"),
        (ANY, [{"gpus_per_task": 1, "cores": 2, "holds": share(0, 2, 0, (1, 0))}], "asked for 2"),
        (ANY, [{"memory_per_node": 50}], "holds 0 MB of g1, and asked for 50 MB"),
        (ANY, [{"memory_per_core": 20, "cores": 2, "holds": share(0, 2, 20)}], "asked for 40 MB"),
        (ANY, [{"array": 1, "task": task, "throttle": 1} for task in range(2)], "2 tasks run"),
        (ANY, [{"pauses": [(2, 6)], "suspended": 4}], "completed after 6 s of 10 s"),
        (ANY, [{"pauses": [(2, 6)]}], "suspended for -1 s, in the ledger for 4 s"),
        (ANY, [{"pauses": [(6, 2)]}], "which is not in order of time"),
        (ANY, [{"holds": FOUR, "pauses": [(2, 6)]}, {"holds": FOUR, "start": 7}], "8 of 4 cores"),
        (ANY, [{"holds": share(0, 1, 90), "pauses": [(2, 6)]},
               {"holds": share(0, 1, 90), "start": 2}], "180 of 100 MB in use"),
        (KEPT, [{"start": 45}], "g1 is kept for reservation kept"),
        (KEPT, [{"reservation": "kept", "user": 2}], "outside the time of reservation kept"),
        (KEPT, [{"reservation": "kept", "user": 2, "start": 50, "holds": share(1)}],
         "g2 is outside"),
        (KEPT, [{"reservation": "kept", "start": 50}], "user u1 may not use reservation kept"),
        (KEPT, [{"reservation": "past"}], "ran in reservation past, which there is not"),
        (HALF, [TWO | {"start": 45}, {"start": 50}], "g1: 3 cores in use, 2 are not kept"),
        (site(Limits(group_jobs=1)), [{}, {"user": 2}], "QOS normal: group_jobs above 1"),
        (site(Limits(max_jobs=1)), [{}, {"start": 9}], "QOS normal: max_jobs above 1"),
        (site(Limits(max_jobs_per_account=1)), [{}, {"user": 2}], "max_jobs_per_account above 1"),
        (site(Limits(group_tres={"cpu": 1})), [{}, {}], "group_tres cpu above 1"),
        (site(Limits(max_tres_per_user={"node": 1})), [{}, {"holds": share(1)}],
         "per_user node above"),
        (site(Limits(max_tres={"mem": 5})), [{"holds": share(memory=6)}], "against max_tres 5"),
        (site(Limits(min_tres={"cpu": 2})), [{}], "QOS normal: 1 cpu, against min_tres 2"),
        (site(Limits(max_tres_per_node={"cpu": 1})), [TWO], "2 cpu, against max_tres_per_node 1"),
        (site(Limits(max_wall=5)), [{}], "QOS normal: 10 s of limit, against max_wall 5"),
        (site(Limits(max_submit=1)), [{}, {"start": 20}], "QOS normal: max_submit above 1"),
        (site(Limits(max_submit_per_account=1)), [{}, {"user": 2, "at": 9, "start": 20}],
         "max_submit_per_account above 1"),
        (OWNED, [{"user": 1}, {"user": 2}], "association a: group_jobs above 1"),
        (OWNED, [{"user": 1}, {"start": 20}], "association u1: max_submit"),
        (OWNED, [{"user": 2}] * 3, "association a: group_submit above 2"),
        (OWNED, [TWO | {"user": 3, "limit": 5, "run": 5}] * 2, "b: group_tres cpu"),
        (OWNED, [{"user": 3, "holds": [share(), share(1)]}], "u3: 2 node, against"),
        (ANY, [{"at": 5}], "started at 0 s, before it could, 5 s"),
        (ANY, [{"begin": 7}], "started at 0 s, before it could, 7 s"),
    ],
)  # fmt: skip
def test_each_kind_of_fault_is_found(machine, jobs, fault):
    """What was used twice, against a request, a rule or a limit is named, with job and second."""
    made, ledger = ran(*jobs)
    found = faults(machine, made, ledger)
    assert any(fault in one for one in found), found


def test_the_first_faults_are_named():
    """The strict form is one line, which counts the rest."""
    made, ledger = ran(*[{"features": "none"}] * 4, *[{"at": 3}] * 4)
    with pytest.raises(SchedulerError, match=r"^faults of the schedule: job .*\(and \d+ more\)$"):
        audit(site(), made, ledger)


@pytest.mark.parametrize(
    ("machine", "jobs"),
    [
        (site(Limits(max_jobs=1, max_submit=2)), [{}, {"start": 10}]),
        (KEPT, [{"start": 40}, {"start": 100}, {"start": 50, "user": 2,
         "reservation": "kept", "holds": share(0, 3)}]), (HALF, [TWO | {"start": 45}]),
        (KEPT, [{"run": 90, "limit": 50}]),  # beyond its limit, and kept
        (ANY, [{"features": "fast&[slow|fast]", "exclusive": 1, "holds": WHOLE}]),
        (site(partitions=PARTS, accounts=ACCOUNTS), [{"user": 1}, {"user": 2, "start": 10}]),
        (site(Limits(max_jobs=0), scheduling={}), [{}, {}]),  # not enforced
    ],
)  # fmt: skip
def test_what_is_right_has_no_faults(machine, jobs):
    """Up to the limits, and until a reservation begins, nothing is wrong."""
    made, ledger = ran(*jobs)
    assert [] == faults(machine, made, ledger)
    audit(machine, made, ledger)


@pytest.mark.parametrize(
    ("entry", "columns", "fault"),
    [
        (None, {}, "the ledger knows nothing of it"),
        (None, {}, "completed after 0 runs to the end"),
        ({"row": 7}, {}, "row 7: in the ledger, and not in the table"),
        ({"start": 2}, {}, "started at 0 s, in the ledger at 2 s"),
        ({"eligible": 3}, {}, "started at 0 s, before it could, 3 s"),
        ({"end": -5}, {}, "preempted at -5 s, before it started, 0 s"),
        ({}, {"state": State.REJECTED}, "rejected, and ran"),
        ({}, {"state": State.FAILED}, "failed at 10 s, and was not preempted then"),
        ({}, {"end": 9}, "completed after 9 s of 10 s"),
        ({}, {"enqueued": 1}, "started at 0 s, before it could, 1 s"),
        ({}, {"state": State.KILLED, "requested_time": 30},
         "killed after 10 s, before its limit of 30 s"),
    ],
)  # fmt: skip
def test_ledger_and_table_must_agree(entry, columns, fault):
    """Jobs in = jobs out: each state has the runs that lead to it."""
    made, (run,) = ran({})
    for name, value in columns.items():
        made.matrix[Column[name.upper()], 0] = value
    found = faults(site(), made, [] if entry is None else [replace(run, **entry)])
    assert any(fault in one for one in found), found


def test_preempted_runs_end_when_they_were_stopped():
    """What a job held counts until it was preempted, and not until its last end."""
    made, ledger = ran({"start": 20, "holds": FOUR}, {"start": 5, "holds": FOUR})
    ledger.insert(0, replace(ledger[0], start=0, end=5))
    assert [] == faults(site(), made, ledger)
    ledger[0] = replace(ledger[0], end=6)
    (fault,) = faults(site(), made, ledger)
    assert fault.endswith("g1: 8 of 4 cores in use")
    ledger[0] = replace(ledger[0], end=21)
    assert "started at 20 s while it ran already" in faults(site(), made, ledger)[0]


@pytest.mark.parametrize(("state", "submit"), [(State.REJECTED, 8), (State.RENOUNCED, UNKNOWN)])
def test_who_was_preempted_may_end_without_a_run(state, submit):
    """If its user took it back, and submitted it again with another request, or renounced it."""
    made, ledger = ran({})
    ledger[0] = replace(ledger[0], end=5)
    made.matrix[Column.STATE, 0] = state
    made.matrix[[Column.START, Column.END], 0] = UNKNOWN
    assert any(f"{state.name.lower()}, and ran" in one for one in faults(site(), made, ledger))
    made.matrix[Column.SUBMIT, 0] = submit
    assert [] == faults(site(), made, ledger)


@pytest.mark.parametrize(
    ("second", "most", "safe"), [(59, 1, False), (70, 1, False), (70, 3, True)]
)
def test_decayed_usage_is_checked(second, most, safe):
    """Two cores have used two minutes at the calculation before the second job, or one."""
    scheduling = {"enforce_limits": True, "safe_limits": safe}
    priority = {"calculation_period": 30, "half_life": 0}
    qos = (Qos(name="normal", limits=Limits(group_tres_minutes={"cpu": most})),)
    machine = Machine(nodes=NODES, qos=qos, scheduling=scheduling, priority=priority)
    first, then = {"run": 60, "holds": share(cores=2)}, {"at": 1, "start": second, "limit": 100}
    made, ledger = ran({**first, "cores": 2, "limit": 60}, then)
    used = "120.000" if second >= 60 else "60.000"
    when, what = f"job 2 (row 1): started at {second} s", f"QOS normal: {used} s of cpu used"
    assert [f"{when}; {what}, against {most} minutes"] == faults(machine, made, ledger)
    loose = Qos(name="normal", limits=Limits(group_tres_minutes={"cpu": 4}))
    assert [] == faults(machine.changed(qos=(loose,)), made, ledger)
