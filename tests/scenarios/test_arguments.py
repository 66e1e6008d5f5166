"""What functions take from Python: texts, runs, classes; a mistake is one line."""

import hpcrowd as hc
import pytest

from tests.scenarios.sweeps.sweep_cases import write_busy


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return a small busy log."""
    return hc.read_trace(write_busy(tmp_path_factory.mktemp("log"), 60))


@pytest.fixture(scope="module")
def run(log):
    """Return a replay of it."""
    return hc.replay(log)


def test_runs_where_traces_are_wanted(log, run, tmp_path):
    """A run is written, cut, measured, fitted to and replayed as its trace would be."""
    hc.write_trace(run, str(tmp_path / "run.swf"))
    hc.write_trace(run.to_trace(), str(tmp_path / "trace.swf"))
    assert (tmp_path / "trace.swf").read_bytes() == (tmp_path / "run.swf").read_bytes()
    part, _ = hc.window(run, "2h..6h")
    assert len(hc.window(run.to_trace(), 7200, 21_600)[0]) == len(part)
    assert len(run.jobs) == len(hc.replay(run).jobs)
    assert len(hc.features.read_workload(log)) == len(hc.features.read_workload(run))


def test_texts_and_classes(log, run):
    """Windows and definitions are texts as on the command line; a class is as its instance."""
    assert hc.gantt(run, "2h..6h").axes
    jobs = hc.jobs_from_trace(log).jobs
    assert "arrival:60s" == str(hc.find_sessions(jobs, "arrival:60s").definition)
    model = hc.Simulation(jobs, 8, hc.policies.FCFS)
    assert "fcfs" == str(model.cluster.scheduler)
    settings = hc.forecasts.Forecast(log, machine="m.toml", changes="processors=9", days="2")
    assert ("m.toml", ("processors=9",), 2) == (
        str(settings.machine[0]), settings.changes, settings.days,
    )  # fmt: skip


def test_compare_takes_runs_or_a_list(run, log):
    """``compare(a, b)`` is ``compare([a, b])``."""
    other = hc.replay(log, scheduler="fcfs")
    assert hc.compare([run, other]).metrics.equals(hc.compare(run, other).metrics)


WRONG = {
    "hc.replay(log, seed=-1)": "seed -1: must be 0 or more",
    "hc.ReplayConfig(seed='a')": "seed 'a': must be a whole number",
    "hc.replay(log, platform={'changes': [{'kind': 'x'}]})": r"changes\[0\]: do is missing",
    "hc.resample(log, population={'a': 1})": "population: must be a text",
    "hc.gantt(log)": "not a run; hc.replay",
    "hc.gantt(run, (1, 2, 3))": "not a pair of moments",
    "hc.write_results(log, 'folder')": "not a run; hc.replay",
    "hc.write_trace(3, 'a.swf')": "3: neither a trace nor a run",
    "hc.forecast(log, days='many')": "days 'many': must be a number of days",
}


@pytest.mark.parametrize(("call", "said"), WRONG.items(), ids=WRONG)
def test_mistakes_are_one_line(call, said, log, run):
    """A mistake says what is wrong in our words."""
    with pytest.raises(hc.HpcrowdError, match=said) as error:
        eval(call, {"hc": hc, "log": log, "run": run})
    assert "Input should" not in str(error.value)
    assert "\n" not in str(error.value)
