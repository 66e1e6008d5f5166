"""A machine as settings give it: paths with changes of single values."""

import pytest
from hpcrowd.environment.errors import HpcrowdError, MachineError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.files.reading import located_text, machine_given, read_machine
from hpcrowd.environment.machine.model import Machine, NodeType
from hpcrowd.environment.platform.changes import Resize
from hpcrowd.scenarios.kinds.replay import ReplayConfig, replay

from tests.support.simulations import simulation_of

SITE = """\
name = "toy"

[[nodes]]
name = "n[1-2]"
cores = 4

[[partitions]]
name = "gpu"
max_time = "1h"

[[qos]]
name = "normal"
"""

LOG = "".join(
    f"{number} {number * 10} -1 100 {size} -1 -1 {size} 200 -1 1 {number} 1 -1 1 -1 -1 -1\n"
    for number, size in ((1, 4), (2, 8), (3, 4))
)


@pytest.fixture
def site(tmp_path):
    """A machine of two nodes in a file."""
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    (tmp_path / "log.swf").write_text(LOG)
    return path


def test_values_are_changed_behind_a_colon(site):
    """Keys are those of the file, with - or _; entries of lists go by their names."""
    text = ("site.toml:priority.weight-age=7,partitions.gpu.max_time=2h,"
            "qos.normal.limits.max-jobs=3,qos.normal.limits.max_tres_per_user.cpu=4")  # fmt: skip
    located = located_text(text, site.parent)  # keeps its meaning in another folder
    assert located.startswith(f"{site}:priority.weight-age=7,")
    for machine in (machine_given(text, site.parent), machine_given(located)):
        limits = machine.qos[0].limits
        assert 7 == machine.priority.weight_age
        assert 7200 == machine.partitions[0].max_time
        assert (3, {"cpu": 4}) == (limits.max_jobs, limits.max_tres_per_user)
    assert 3600 == machine_given("site.toml", site.parent).partitions[0].max_time


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("site.toml:priority.weigth-age=7", "did you mean weight_age"),
        ("site.toml:partitions.cpu.max-time=7", "did you mean gpu"),
        ("site.toml:priority.weight-age=-7", "weight_age -7"),
        ("site.toml:name.first=7", "'name' has no parts"),
        ("nowhere.toml", "nowhere.toml"),
    ],
)
def test_mistakes_are_one_line(site, text, message):
    """The message names the key or file, and what there is."""
    with pytest.raises(MachineError, match=message):
        machine_given(text, site.parent)


def test_equal_contents_have_one_identity(site):
    """Sweeps know a run again by what the machine's files say, not by where they are."""
    other = site.parent / "other.toml"
    other.write_text("# the same\n" + SITE)
    log = str(site.parent / "log.swf")
    first, second = (
        ReplayConfig.configure(trace=log, machine=str(path), scheduler="slurm").identity()
        for path in (site, other)
    )
    assert first["machine"] == second["machine"]


def test_what_a_machine_excludes(site):
    """It has its cores, and reservations instead of platform changes of equal processors."""
    with pytest.raises(HpcrowdError, match="the machine has 8 cores; give one of the two"):
        replay(site.parent / "log.swf", machine=str(site), scheduler="slurm", processors=10)
    machine = Machine(nodes=(NodeType(name="n1", cores=4),))
    with pytest.raises(HpcrowdError, match="give the machine reservations"):
        simulation_of(JobTable(), 4, "slurm", machine=machine, platform=[Resize(5, 8)])


def test_how_long_cycles_took(tmp_path):
    """Of sdiag, the mean backfill cycle; not the main scheduler's, and not that of samples."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=x\nNodeName=n1 CPUs=4\nPartitionName=all Nodes=n1 Default=YES\n"
    )
    stars = "*" * 40
    text = (
        f"{stars}\nsdiag output at Mon Jan 05 19:02:57 2026 (1767639777)\n{stars}\n"
        "Main schedule statistics (microseconds):\n\tMean cycle:   11863\n\n"
        "Backfilling stats\n\tTotal cycles: 1212\n\tLast cycle: 4792\n\tMean cycle: 37996\n"
    )
    (tmp_path / "samples.txt").write_text(f"=== 2026-01-05T08:15:00 t=900 sdiag\n{text}")
    assert 0 == read_machine(tmp_path).scheduling.cycle_time
    (tmp_path / "sdiag.txt").write_text(text)
    assert 0.037996 == read_machine(tmp_path).scheduling.cycle_time
    (tmp_path / "sdiag.txt").write_text(text.replace("Mean cycle: 37996\n", ""))
    assert 0 == read_machine([tmp_path]).scheduling.cycle_time
