"""What the tests of reports have: a run of every kind."""

import pytest
from hpcrowd import JobTable, Run, read_recorded, write_swf
from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.populations.openness import Happening, Visit
from hpcrowd.analysis.accounts.population import Population
from hpcrowd.scenarios.kinds.platform_files import PlatformConfig
from hpcrowd.scenarios.kinds.replay import replay

from tests.support.reports import busy_trace


@pytest.fixture(scope="session")
def runs(make_trace, tmp_path_factory):
    """A run of every kind that a report describes, by what is special with it."""
    folder = tmp_path_factory.mktemp("runs")
    trace = busy_trace(make_trace)
    trace.sha256 = "f" * 64
    write_swf(trace, folder / "log.swf")
    changes = [
        {"do": "maintain", "start": "2000-03-24 12:00", "end": "2000-03-24 18:00"},
        {"do": "resize", "at": 90000, "processors": 6},
        {"do": "switch", "at": 100000, "scheduler": "fcfs"},
    ]
    platform = PlatformConfig.model_validate({"name": "plan", "changes": changes})
    nodes = [{"name": "thin", "idle": "60 W", "processor": "40 W"}]
    visits = replay(trace, users="rigid", power={"nodes": nodes, "tariff": {"price": 0.2}})
    there, gone = Visit(0, 10, Happening.THERE), Visit(90000, 10, Happening.GAVE_UP)
    rows = [there, Visit(86400, 11, Happening.ARRIVED), gone]
    visits.parts["population"] = Population(rows=rows)
    unrecorded = replay(trace, users="rigid")
    for column in ("recorded_submit", "recorded_start", "recorded_end"):
        getattr(unrecorded.jobs, column)[:] = -1
    unrecorded.reading.trace = unrecorded.work = None
    torn = busy_trace(make_trace)
    torn.columns["wait"][1:-1] = -1
    for name in ("requested_processors", "allocated_processors"):
        torn.columns[name][-1] = -1
    write_swf(torn, folder / "torn.swf")
    return {
        "plain": replay(trace, users="think-time", log=DecisionLog()),
        "platform": replay(trace, users="rigid", platform=platform),
        "visits": visits,
        "record": read_recorded(folder / "log.swf"),
        "unrecorded": unrecorded,
        "one job": replay(busy_trace(make_trace, 1), users="rigid"),
        "no clock": replay(busy_trace(make_trace, header="; MaxProcs: 4"), users="fluid"),
        "repaired": read_recorded(folder / "torn.swf"),
        "empty": Run(JobTable(), 4, "nobody", {}),
    }
