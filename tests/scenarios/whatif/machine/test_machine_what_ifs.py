"""What-ifs of machines of nodes: a made-up site, seven changes, and what their table says."""

import numpy as np
import pytest
from hpcrowd import HpcrowdError, JobTable, State
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.machine.files.reading import with_changes
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import Machine, NodeType, Preempt, Reservation
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.scenarios.whatif.machine import comparison, made_up
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_what_if, made_up_site

from tests.scenarios.whatif.test_scripts import MACHINES, script
from tests.support.simulations import simulation_of


@pytest.fixture(scope="module")
def site():
    """Return the made-up site with a third of its users."""
    kinds = tuple(kind._replace(users=-(-kind.users // 3)) for kind in made_up.KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "KINDS", kinds)
        return made_up_site()


@pytest.fixture(scope="module")
def found(site):
    """Return the runs of every script on the small site."""
    return {
        name: machine_what_if(site, script(f"machine.{name}").change(site)) for name in MACHINES
    }


def test_made_up_site_is_the_same_every_time(site):
    """The seed decides; thirty users, four partitions; the log is the run of rigid users."""
    jobs = made_up.made_up_jobs()
    assert jobs == made_up.made_up_jobs()
    assert jobs != made_up.made_up_jobs(1)
    assert 30 == len({job.user for job in jobs})
    partitions = {one.name for one in made_up.made_up_machine().partitions}
    assert {job.kind.partition for job in jobs} == partitions
    assert all(0 < job.run <= job.limit for job in jobs)
    run = machine_what_if(site, Change("", site.machine), users=("rigid",)).before["rigid"]
    assert (run.jobs.start == run.jobs.recorded_start).all()
    assert 0 == run.metrics["jobs_rejected"]
    assert (run.jobs.start > run.jobs.submit).any()


def test_made_up_site_is_written_as_files(tmp_path, capsys, monkeypatch):
    """The folder has a log and a machine that read back as the made-up site."""
    monkeypatch.setattr(made_up, "KINDS", made_up.KINDS[:1])
    assert 0 == made_up.main([str(tmp_path / "site")])
    read = comparison.read_site(*(str(tmp_path / "site" / n) for n in ("jobs.txt", "machine.toml")))
    assert made_up.made_up_machine() == read.machine
    site = made_up_site()
    for field in ("submit", "wait", "run", "requested_processors", "requested_time"):
        assert site.trace[field].tolist() == read.trace[field].tolist()
    assert "jobs.txt, machine.toml" in capsys.readouterr().out
    assert 2 == made_up.main([])
    (tmp_path / "site/machine.toml").write_text("mine")
    assert 2 == made_up.main([str(tmp_path / "site")])
    assert 2 == capsys.readouterr().err.count("\n")


def test_more_gpus_shorten_the_queue_for_gpus(found):
    """Jobs that ask for GPUs run in both partitions, the others in neither, and wait less."""
    for users, run in found["gpu_partition"].after.items():
        home = run.parts["nodes"].account["home"]
        before = found["gpu_partition"].before[users].parts["nodes"].account["home"]
        assert home["partitions"]["gpu-new"]["jobs"] > 0
        assert 4 + before["gpus"] == home["gpus"]
        requests = run.jobs.requests
        assert requests is not None
        both = np.array(requests.texts(Ask.PARTITIONS)) == "gpu,gpu-new"
        gpus = [requests[ask] > 0 for ask in (Ask.GPUS, Ask.GPUS_PER_NODE, Ask.GPUS_PER_TASK)]
        assert (both == np.any(gpus, axis=0)).all()


def test_whole_nodes_are_taken_without_more_work(found):
    """More cores are taken, less work is done; rigid users wait longest. Twice is as before."""
    what_if = found["node_sharing"]
    for before, after in zip(what_if.before.values(), what_if.after.values(), strict=True):
        assert after.metrics["utilization"] > before.metrics["utilization"]
        assert comparison.work_per_week(after) <= comparison.work_per_week(before)
    waits = {users: run.metrics["wait_mean_s"] for users, run in what_if.after.items()}
    assert waits["think-time"] < waits["rigid"]
    assert what_if.after["think-time"].metrics["lateness_mean_s"] > 0


def test_debug_partition_takes_a_node_for_short_jobs(site, found):
    """Only jobs of up to an hour of the default partition name it; its node is in no other."""
    run = found["debug_partition"].after["rigid"]
    jobs = run.jobs
    assert jobs.requests is not None
    texts = jobs.requests.texts(Ask.PARTITIONS)
    short = np.array([text.startswith("debug,") for text in texts])
    assert short.any()
    assert set(np.array(texts)[short]) == {"debug,normal"}
    assert jobs.requested_time[short].max() <= HOUR < jobs.requested_time[~short].max()
    layout = Layout(script("machine.debug_partition").change(site).machine)
    debug = layout.nodes_of("debug")
    assert 1 == debug.bit_count()
    assert not any(layout.nodes_of(one) & debug for one in ("normal", "long", "gpu", "scavenger"))
    assert run.parts["nodes"].account["home"]["partitions"]["debug"]["jobs"] > 0


def test_the_rack_is_reserved_while_it_is_drained(site):
    """The work is on its two nodes from 8 to 18 on the first Monday; sharing switches back."""
    (work,) = script("machine.drain_rack").change(site).machine.reservations
    clock = Clock.of(site.trace.header)
    assert "Mon 2024-01-15 08:00" == f"{clock.local(work.start):%a %Y-%m-%d %H:%M}"
    assert 10 * HOUR == work.end - work.start
    assert 2 == Layout(site.machine).nodes_in(work.nodes).bit_count()
    sharing = script("machine.node_sharing").change
    once = sharing(site).machine
    assert all(one.exclusive for one in once.partitions)
    again = sharing(Site(site.trace, once))
    assert ("Shared nodes", site.machine) == (again.title, again.machine)


def most_running(run):
    """Return the most jobs of a user that run at one second."""
    jobs, peaks = run.jobs, [0]
    for user in np.unique(jobs.user):
        mine = (jobs.user == user) & (jobs.start >= 0)
        times = np.concatenate([jobs.end[mine], jobs.start[mine]])
        steps = np.repeat([-1, 1], mine.sum())
        peaks.append(int(np.cumsum(steps[np.lexsort((steps, times))]).max()))
    return max(peaks)


def test_nobody_runs_more_jobs_than_the_limit(found, site):
    """At no second more than four jobs of a user run; each QOS of the machine gets the limit."""
    limit, what_if = script("machine.jobs_per_user").JOBS, found["jobs_per_user"]
    for users in ("rigid", "think-time"):
        assert most_running(what_if.after[users]) == limit < most_running(what_if.before[users])
    qos = {"name": "high", "priority": 7, "limits": {"max_wall": DAY}}
    machine = Machine.model_validate({**dict(site.machine), "qos": [qos]})
    (one,) = script("machine.jobs_per_user").change(Site(site.trace, machine)).machine.qos
    assert (7, DAY, limit) == (one.priority, one.limits.max_wall, one.limits.max_jobs)


def test_scavengers_are_preempted_and_nobody_else(site, found):
    """All runs that are stopped are the scavenger's; they are requeued, and their work is lost."""
    for run in found["scavenger"].after.values():
        partitions = run.parts["nodes"].account["home"]["partitions"]
        stopped = {name: one["runs_preempted"] for name, one in partitions.items()}
        assert stopped.pop("scavenger") == run.metrics["runs_preempted"] > 0
        assert not any(stopped.values())
        assert {"requeue"} == {one.fate for one in run.attempts}
        assert run.metrics["preempted_processor_h"] > 0
        assert run.jobs.count(State.COMPLETED) == len(run.jobs)
    partitions = script("machine.scavenger").change(site).machine.partitions
    modes = {one.name: one.preempt_mode for one in partitions}
    assert Preempt.REQUEUE == modes.pop("scavenger")
    assert {Preempt.OFF} == set(modes.values())


def test_what_a_question_needs_is_reported(site, monkeypatch):
    """A partition, a weight of fair share or a Monday that is not there is named with the cure."""
    few = site.machine.changed(partitions=site.machine.partitions[:2])
    without = with_changes(site.machine, {"priority.weight-fair-share": 0})
    for name, machine, rule in (
        ("scavenger", few, r"partition 'scavenger': .*normal.*; see PARTITION"),
        ("fair_share_weight", without, "fair share has no weight; give the machine one"),
    ):
        with pytest.raises(HpcrowdError, match=rule):
            script(f"machine.{name}").change(Site(site.trace, machine))
    monkeypatch.setattr(script("machine.drain_rack"), "WEEK", 3)
    with pytest.raises(HpcrowdError, match="ends before the end of the work in week 3, see WEEK"):
        script("machine.drain_rack").change(site)


def test_rejected_jobs_are_listed_by_reason(site):
    """A change after which jobs can never run shows how many, and Slurm's word for it."""
    change = Change("", with_changes(site.machine, {"partitions.gpu.max-time": 60}))
    what_if = machine_what_if(site, change, users=("rigid",))
    rows = {row[0]: row[1:] for row in what_if.table("").rows}
    gpu = str([site.trace.names["queue"][queue] for queue in site.trace["queue"]].count("gpu"))
    assert ("0", gpu) == tuple(rows["jobs rejected"])
    assert ("-", gpu) == tuple(rows["rejected: PartitionTimeLimit"])


def test_logs_without_requests_keep_memory_and_account():
    """Naming a partition for a job does not lose what its record says otherwise."""
    jobs = JobTable()
    jobs.append(2, group=[0, 1], requested_memory=[1500, -1], queue=-1)
    jobs.names = {"group": {0: "physics"}}
    machine = Machine(nodes=(NodeType(name="n1", cores=4),))
    jobs.requests = comparison.plain_requests(jobs)
    comparison.ask_for_partitions(machine, lambda jobs, row, asked: (*asked, "new"))(jobs)
    requests: Requests | None = jobs.requests
    assert requests is not None
    assert ["all,new"] * 2 == requests.texts(Ask.PARTITIONS)
    assert [2, -1] == requests[Ask.MEMORY_PER_CORE].tolist()
    assert ["physics", ""] == requests.texts(Ask.ACCOUNT)
    assert 0 == comparison.gpus_of(jobs, 0)


def test_dates_of_reservations_count_from_the_origin():
    """A reservation at a date begins at that second of the run; earlier times are of the run."""
    origin = made_up.FIRST_DAY
    dated = Reservation(name="a", start=origin + 50, end=origin + 90)
    of_run = Reservation(name="b", start=5, end=9)
    machine = Machine(nodes=(NodeType(name="n1", cores=4),), reservations=(dated, of_run))
    moved = machine.since(origin).reservations
    assert [(50, 90), (5, 9)] == [(one.start, one.end) for one in moved]
    jobs = JobTable()
    jobs.append(1, user=1, processors=1, run_time=60, requested_time=60)
    model = simulation_of(jobs, 4, "slurm", machine=machine, clock=Clock(origin))
    model.submit(made_up._Nobody(), np.arange(1), 0)
    model.run()
    assert jobs.start[0] >= 90


def test_script_runs_on_the_made_up_site(capsys, monkeypatch):
    """Without arguments, a script prints its table of the made-up site and returns 0."""
    monkeypatch.setattr(made_up, "KINDS", made_up.KINDS[:1])
    assert 0 == script("machine.fair_share_weight").main([])  # twice the weight
    captured = capsys.readouterr()
    assert "Weight of fair share 4,000 instead of 2,000: made-up site" in captured.out
    assert "wait of physics (h)" in captured.out
    assert "" == captured.err
