"""Minh 2012, chapters 4 and 5, are reproduced: measures, rules and results on small logs."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.features.jobs import normalized_entropy
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.analysis.models.judgement import generated
from hpcrowd.environment.errors import UnavailableError
from hpcrowd.scenarios.studies.minh2012 import models as study
from hpcrowd.scenarios.studies.minh2012 import models_experiments as experiments
from hpcrowd.scenarios.studies.minh2012 import models_measures as measures
from hpcrowd.scenarios.studies.minh2012.models import SEEDS, Minh2012Models, arrival_table
from hpcrowd.scenarios.studies.minh2012.models_experiments import PLANNED, REQUIRED_WAY, simulated
from hpcrowd.scenarios.studies.minh2012.models_measures import LOADS, study_arrivals, system_of

from tests.scenarios.studies.study_cases import shown


def bursts(jobs=400, seed=1):
    """Return jobs that come in bursts over eleven days."""
    random = np.random.default_rng(seed)
    gaps = random.lognormal(5, 2, jobs)
    run = np.ceil(random.lognormal(5, 1, jobs))
    return Workload.of(np.cumsum(gaps), run, random.integers(1, 17, jobs), machine=16)


def flat(cv, hurst=0.7, zeros=0.3):
    """Return arrivals of which only these figures are known."""
    return measures.Arrivals(cv, zeros, zeros, hurst, 0.05, 0.1, None, None)


def points(*slowdowns):
    """Return points that are the same at all loads, one for each policy."""
    found = np.repeat(np.array(slowdowns)[:, None], len(LOADS), axis=1)
    return measures.Points(found, np.full(len(LOADS), 10), np.zeros(len(LOADS)))


def test_arrivals_are_generated_from_every_model():
    """A workload for each seed, which alone decides; the chosen model is one; zeros are counted."""
    workload = bursts(2_000)
    runs = study_arrivals(workload.submit, 900.0, range(3))
    assert {*measures.FITS, measures.CHOSEN} == set(runs.models)
    assert {3} == {len(made) for made in runs.models.values()}
    assert runs.models[runs.choice] is runs.models[measures.CHOSEN]
    assert runs.trace.zeros == runs.trace.empty
    assert 0 == runs.mean("plain", "zeros") < runs.mean("modified", "zeros")
    assert 0 == runs.trace.ks < runs.mean("plain", "ks")
    submit = bursts(2_000).submit
    both = study_arrivals(submit, 900.0, [4, 5]), study_arrivals(submit, 900.0, [5])
    assert both[0].models["plain"][1].cv == both[1].models["plain"][0].cv
    assert both[0].models["plain"][0].cv != both[0].models["plain"][1].cv


def test_a_short_trace_shows_why_no_model_fits():
    """Five jobs in an hour are too few intervals: Poisson is chosen, the others have reasons."""
    runs = study_arrivals(np.array([0.0, 10, 500, 1500, 3600]), 900.0, range(2))
    assert ("poisson", {measures.CHOSEN}) == (runs.choice, set(runs.models))
    assert set(measures.FITS) == set(runs.reasons)
    assert "intervals" in runs.reasons["plain"]
    with pytest.raises(UnavailableError, match=r"plain: .*intervals"):
        runs.mean("plain", "cv")
    with pytest.raises(UnavailableError, match="too short"):
        runs.of_trace("hurst")


def test_a_workload_is_not_a_distance_from_itself():
    """Longer jobs are at some distance; sizes of bags as drawn are compared too."""
    workload = bursts()
    assert {0.0} == set(measures.measured_jobs(workload, workload).distances.values())
    longer = replace(workload, run_time=workload.run_time * 10, _known={})
    found = measures.measured_jobs(longer, workload).distances
    assert (0.0, True) == (found["processors"], found["run_time"] > 0.5)
    workload = Workload.of([0, 5, 500, 900], [10.0, 10.0, 20.0, 30.0], user=[1, 1, 2, 3])
    found = measures.measured_jobs(workload, workload, np.array([1.0, 1.0, 1.0, 2.0]))
    assert 0 == found.distances["bags"]
    assert pytest.approx(3 / 4 - 2 / 3) == found.distances["bags_drawn"]
    assert (2.0, 2.0) == (found.figures["bag_mean"], found.figures["bag_largest"])


def test_the_naive_model_is_uniform():
    """Entropy is near 1, run times and processors stay within those of the trace."""
    trace = bursts(5_000)
    made = measures.uniform(trace, 1)
    assert normalized_entropy(made) > 0.99
    assert (1, 16) == (made.processors.min(), made.processors.max())
    assert 0 <= made.run_time.min() < made.run_time.max() <= trace.run_time.max()
    half = made.run_time.mean() / trace.run_time.max()
    assert pytest.approx(0.5, abs=4 * 12**-0.5 * 5_000**-0.5) == half


def test_a_system_is_as_large_as_the_load_wants():
    """Work of 4,000 s in 10 s: 40 processors at load 1; slowdown is mean response over run time."""
    workload = Workload.of([0, 2, 5, 10], [10.0, 20.0, 30.0, 40.0], 4)
    assert (40, 80) == tuple(system_of(workload, load).processors for load in (1, 0.5))
    assert system_of(workload, 1).fits.all()
    workload = Workload.of([7, 7], [10.0, 10.0], 1)
    assert 1.5 == experiments.slowdown_on(workload, 1, "fcfs")
    assert 1.0 == experiments.slowdown_on(workload, 2, "easy")


def test_jobs_wider_than_the_system_are_left_out():
    """Without the wide jobs the system is smaller, and the load is that of the others."""
    submit, run_time = np.linspace(0, 200, 102), np.full(102, 5.0)
    workload = Workload.of(submit, run_time, [8, 30, *[4] * 100])  # the work is that of 10 or so
    system = system_of(workload, 1)
    assert (10, 1, False) == (system.processors, (~system.fits).sum(), system.fits[1])
    narrow = system_of(workload, 0.5, widest=7)
    assert (20, 2) == (narrow.processors, (~narrow.fits).sum())
    for jobs, reason in (
        (Workload.of([0, 0], [5.0, 5.0], 1), "same second"),
        (Workload.of([0, 100], [1.0, 1.0], 8), "more than 5 % of the jobs"),
    ):
        with pytest.raises(UnavailableError, match=reason):
            system_of(jobs, 0.5)


def test_points_in_the_band_are_counted():
    """The ends of the band belong to it; what could not be simulated does not count."""
    made = [points(1.0, 5.0), points(3.0, 6.0)]
    for trace, inside, known in (
        (points(3.0, 4.9), 1, 2), (points(1.0, 5.5), 2, 2), (points(0.9, np.nan), 0, 1),
    ):  # fmt: skip
        schedule = measures.Schedule(trace, made)
        assert (inside * len(LOADS), known * len(LOADS)) == schedule.count_inside()
        assert (
            inside * len(measures.REQUIRED_LOADS)
            == schedule.count_inside(measures.REQUIRED_LOADS)[0]
        )
    assert [2.0, 5.5] == measures.Schedule(points(1, 1), made).mean[:, 0].tolist()


OVER = "CV of times between jobs over the trace's, {}"


@pytest.mark.parametrize(
    ("trace", "models", "held"),
    [
        ("LLN", (flat(3.3), flat(7.6), flat(7.6)), {"modified": True, "plain": True}),
        ("LLN", (flat(3.4), flat(7.6), flat(7.6)), {"modified": True, "plain": False}),
        ("LLN", (flat(3.3), flat(7.4), flat(7.4)), {"modified": False, "plain": True}),
        ("HPC", (flat(10.9), flat(15, zeros=0.33), flat(9, 0.81)),
         {"near": True, "hurst": False, "zeros": False}),
        ("HPC", (flat(8.9), flat(15, zeros=0.31), flat(9, 0.79)),
         {"near": False, "hurst": True, "zeros": True}),
    ],
)  # fmt: skip
def test_what_is_required_of_arrivals(small, monkeypatch, trace, models, held):
    """Of a trace of CV 10, Hurst 0.7 and zeros 0.3; models are the plain, modified, chosen one."""
    words = {
        "modified": OVER.format("modified model"), "plain": OVER.format("plain model"),
        "near": OVER.format("the nearer model (plain)"),
        "hurst": "Hurst parameter, T = 900 s, chosen model",
        "zeros": "zeros of the rates, T = 900 s, modified model",
    }  # fmt: skip
    one = small.traces[trace]
    module = "hpcrowd.scenarios.studies.minh2012.features_measures.published_jobs"
    monkeypatch.setattr(module, lambda _: len(one.workload))
    names = ("plain", "modified", measures.CHOSEN)
    made = {name: [model] for name, model in zip(names, models, strict=True)}
    runs = measures.ArrivalRuns(900.0, flat(10.0), made, "plain", {})
    changed = replace(one, arrivals={**one.arrivals, 900.0: runs})
    found = {need.what: need.holds for need in changed.requirements}
    assert held == {name: found[words[name]] for name in held}


def test_what_is_told_of_small_logs(small):
    """Nothing is required of another version; LLN is modelled in every way."""
    assert [] == list(small.requirements)
    assert "HPC: another version of the log" in " ".join(shown(small).split())
    rows = [row[:2] for row in small.rows()[1]]
    assert {"HPC", "LLN"} == {trace for trace, _ in rows}
    assert {"arrivals", "jobs", "slowdown"} == {part for _, part in rows}
    assert list(PLANNED) == list(small.traces["LLN"].schedules)
    assert ["thesis"] == list(small.traces["HPC"].schedules)
    assert 4 == len(small.traces["LLN"].schedules["twice"].workloads)
    assert ["thesis", "auto", "heavy"] == list(small.traces["HPC"].jobs)


FILES = {"HPC": "HPC2N-2002-2.1-cln", "LLN": "LLNL-Thunder-2007-1.1-cln"}

#: Statements that do not hold, by trace; all required figures are reached.
NOT_HOLDING = {
    "HPC": {
        "plain: not bursty", "modified: burstiness better", "modified: times between jobs fit",
        "bags: mean size fits", "trace covered", "trace near the average",
    },
    "LLN": {
        "modified: dependence kept", "modified: times between jobs fit", "bags: mean size fits",
        "trace covered",
    },
}  # fmt: skip


def required_study(name, workload):
    """Return the study on a trace, in the required way only."""
    plan = PLANNED[REQUIRED_WAY]
    model = experiments.fitted(workload, plan)
    jobs = [measures.study_jobs(model, workload, seed) for seed in range(SEEDS)]
    made = [simulated(generated(model, workload, seed), plan) for seed in range(SEEDS)]
    naive = [naive for _, naive in jobs if naive is not None]
    itself = measures.measured_jobs(workload, workload)
    arrivals = {
        t: study_arrivals(workload.submit, float(t), range(SEEDS)) for t in measures.TIME_SCALES_S
    }
    runs = measures.JobRuns(itself, [one for one, _ in jobs], naive, model.arrivals.name)
    schedules = {REQUIRED_WAY: measures.Schedule(simulated(workload, plan), made)}
    parts = {"arrivals": arrivals, "jobs": {REQUIRED_WAY: runs}, "schedules": schedules}
    one = experiments.TraceModels(trace=name, workload=workload, **parts)
    return Minh2012Models({name: one}, SEEDS)


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize("name", FILES)
def test_the_study_on_a_trace(read_trace, name, page):
    """Figures are reached and statements hold, but for what is named; the page shows them."""
    workload = Workload.from_trace(read_trace(FILES[name]), name=FILES[name])
    found = required_study(name, workload)
    assert {"HPC": 9, "LLN": 20}[name] == len(found.requirements)
    assert [] == [one.what for one in found.failures]
    assert NOT_HOLDING[name] == {one.name for one in found.claims if not one.holds}
    for row in (*arrival_table(found)[1], *study.schedule_rows(found)):
        assert f"| {' | '.join(row)} |" in page
    for what, trace, data, ours, _ in study.distance_table(found)[1]:
        assert f"| {what} | {trace} | {data} | {ours} | " in page
    if name == "LLN":  # in the band at loads of 0.7 to 0.9, and below it on large systems
        schedule = found.traces["LLN"].schedules[REQUIRED_WAY]
        assert (10, 10) == schedule.count_inside(measures.REQUIRED_LOADS)
        assert (schedule.trace.slowdown < schedule.least)[:, LOADS.index(0.5)].all()
