"""Minh 2012, chapters 4 and 5, are reproduced: measures, rules and results on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features.sizes import normalized_entropy
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.errors import HpcrowdError, UnavailableError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_models.arrivals import (
    CHOSEN,
    FITS,
    ArrivalRuns,
    Arrivals,
    study_arrivals,
)
from hpcrowd.scenarios.studies.minh2012_models.experiments import PLANNED, slowdown_on
from hpcrowd.scenarios.studies.minh2012_models.jobs import measured, uniform
from hpcrowd.scenarios.studies.minh2012_models.measures import (
    PUBLISHED_SERIES,
    TABLED,
    published,
)
from hpcrowd.scenarios.studies.minh2012_models.scheduling import (
    LOADS,
    REQUIRED_LOADS,
    Points,
    Schedule,
    system_of,
)
from hpcrowd.scenarios.studies.minh2012_models.statements import RULES
from hpcrowd.scenarios.studies.minh2012_models.study import (
    STUDIED,
    Minh2012Models,
    reproduce_minh2012_models,
)

from tests.scenarios.studies.minh2012_features.test_study import bursty_log
from tests.scenarios.studies.study_cases import rows_of_folder, shown


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with small logs in the place of HPC2N's and Thunder's."""
    folder = tmp_path_factory.mktemp("traces")
    write_swf(bursty_log(make_trace, 1, 700), folder / "HPC2N-2002-2.1-cln.swf")
    write_swf(bursty_log(make_trace, 3), folder / "LLNL-Thunder-2007-1.1-cln.swf")
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Minh2012Models:
    """Return the study on the small logs."""
    return reproduce_minh2012_models(small_folder, seeds=2, workers=1)


def bursts(jobs: int = 400, seed: int = 1) -> Workload:
    """Return jobs that come in bursts over eleven days."""
    random = np.random.default_rng(seed)
    gaps = random.lognormal(5, 2, jobs)
    run = np.ceil(random.lognormal(5, 1, jobs))
    return Workload.of(np.cumsum(gaps), run, random.integers(1, 17, jobs), machine=16)


def flat(cv: float, hurst: float = 0.7, zeros: float = 0.3) -> Arrivals:
    """Return arrivals of which only these figures are known."""
    return Arrivals(cv, zeros, zeros, hurst, 0.05, 0.1, None, None)


def points(*slowdowns: float) -> Points:
    """Return points that are the same at all loads, one for each policy."""
    found = np.repeat(np.array(slowdowns)[:, None], len(LOADS), axis=1)
    return Points(found, np.full(len(LOADS), 10), np.zeros(len(LOADS)))


# ---- published data --------------------------------------------------------------------------


def test_published_tables_are_whole() -> None:
    """Eight lines of Table 4.1, eight of 4.2, six of 4.3; three and two figures of five traces."""
    found = {
        (table, figure, trace, series): published(table, figure, trace, series)
        for table, figure in (
            ("4.1", "cv"), ("4.1", "zeros"), ("4.2", "hurst"), ("4.2", "hurst_sd"), ("4.3", "cv"),
            ("5.1", "entropy"), ("5.2", "spearman"),
        )
        for trace in TABLED
        for series in PUBLISHED_SERIES
    }  # fmt: skip
    lines = [key[0] for key, printed in found.items() if printed]
    assert [8, 8, 6, 15, 10] == [lines.count(name) for name in ("4.1", "4.2", "4.3", "5.1", "5.2")]
    assert ["24.65", "25.81", "25.77", "27.20"] == [
        one.text for one in found["4.3", "cv", "NOR", "modified"]
    ]
    assert [0.073] == [one.value for one in found["5.2", "spearman", "LAN", "data"]]
    assert ["0.996"] == [one.text for one in found["5.1", "entropy", "LLN", "uniform"]]


def test_every_trace_of_the_tables_is_looked_for() -> None:
    """Every trace of the tables has a file, and every way a name for people."""
    assert set(TABLED) == set(STUDIED)
    assert all(way.words for way in PLANNED.values())


# ---- arrivals --------------------------------------------------------------------------------


def test_arrivals_are_generated_from_every_model() -> None:
    """Each model has a workload for each seed; the chosen one is one of them; zeros are counted."""
    workload = bursts(2_000)
    runs = study_arrivals(workload.submit, 900.0, range(3))
    assert {*FITS, CHOSEN} == set(runs.models)
    assert {3} == {len(made) for made in runs.models.values()}
    assert runs.models[runs.choice] is runs.models[CHOSEN]
    assert runs.trace.zeros == runs.trace.empty
    assert 0 == runs.mean("plain", "zeros") < runs.mean("modified", "zeros")
    assert 0 == runs.trace.ks < runs.mean("plain", "ks")


def test_the_same_seeds_give_the_same_arrivals() -> None:
    """What a seed gives does not depend on the others."""
    submit = bursts(2_000).submit
    both = study_arrivals(submit, 900.0, [4, 5]), study_arrivals(submit, 900.0, [5])
    assert both[0].models["plain"][1].cv == both[1].models["plain"][0].cv
    assert both[0].models["plain"][0].cv != both[0].models["plain"][1].cv


def test_a_short_trace_shows_why_no_model_fits() -> None:
    """Five jobs in an hour are too few intervals: Poisson is chosen, the others have reasons."""
    runs = study_arrivals(np.array([0.0, 10, 500, 1500, 3600]), 900.0, range(2))
    assert ("poisson", {CHOSEN}) == (runs.choice, set(runs.models))
    assert set(FITS) == set(runs.reasons)
    assert "intervals" in runs.reasons["plain"]
    with pytest.raises(UnavailableError, match=r"plain: .*intervals"):
        runs.mean("plain", "cv")
    with pytest.raises(UnavailableError, match="too short"):
        runs.of_trace("hurst")


# ---- jobs ------------------------------------------------------------------------------------


def test_a_workload_is_not_a_distance_from_itself() -> None:
    """All distances are 0, and a workload of longer jobs is at some."""
    workload = bursts()
    assert {0.0} == set(measured(workload, workload).distances.values())
    longer = replace(workload, run_time=workload.run_time * 10, _known={})
    found = measured(longer, workload).distances
    assert (0.0, True) == (found["processors"], found["run_time"] > 0.5)


def test_bags_as_drawn_are_compared_too() -> None:
    """Sizes that a model drew stand next to those found in the workload."""
    workload = Workload.of([0, 5, 500, 900], [10.0, 10.0, 20.0, 30.0], user=[1, 1, 2, 3])
    found = measured(workload, workload, np.array([1.0, 1.0, 1.0, 2.0]))
    assert 0 == found.distances["bags"]
    assert pytest.approx(3 / 4 - 2 / 3) == found.distances["bags_drawn"]
    assert (2.0, 2.0) == (found.figures["bag_mean"], found.figures["bag_largest"])


def test_the_naive_model_is_uniform() -> None:
    """Entropy is near 1, run times and processors stay within those of the trace."""
    trace = bursts(5_000)
    made = uniform(trace, 1)
    assert normalized_entropy(made) > 0.99
    assert (1, 16) == (made.processors.min(), made.processors.max())
    assert 0 <= made.run_time.min() < made.run_time.max() <= trace.run_time.max()
    half = made.run_time.mean() / trace.run_time.max()
    assert pytest.approx(0.5, abs=4 * 12**-0.5 * 5_000**-0.5) == half


# ---- systems and bands -----------------------------------------------------------------------


def test_a_system_is_as_large_as_the_load_wants() -> None:
    """Work of 100 s x 4 processors in 10 s: 40 processors at load 1, 80 at a half."""
    workload = Workload.of([0, 2, 5, 10], [10.0, 20.0, 30.0, 40.0], 4)
    assert (40, 80) == tuple(system_of(workload, load).processors for load in (1, 0.5))
    assert system_of(workload, 1).fits.all()


def test_jobs_wider_than_the_system_are_left_out() -> None:
    """Without the wide jobs the system is smaller, and the load is that of the others.

    100 jobs of 4 x 5 s and two wide ones come in 200 s: the wider one does not fit on the 10 or so
    processors that all work makes, and the other is left out on request.
    """
    submit, run_time = np.linspace(0, 200, 102), np.full(102, 5.0)
    workload = Workload.of(submit, run_time, [8, 30, *[4] * 100])
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


def test_slowdown_is_mean_response_over_mean_run_time() -> None:
    """Two jobs of 10 s at once on one processor respond in 10 and 20 s: 15 / 10."""
    workload = Workload.of([7, 7], [10.0, 10.0], 1)
    assert 1.5 == slowdown_on(workload, 1, "fcfs")
    assert 1.0 == slowdown_on(workload, 2, "easy")


def test_points_in_the_band_are_counted() -> None:
    """The ends of the band belong to it; what could not be simulated does not count."""
    made = [points(1.0, 5.0), points(3.0, 6.0)]
    for trace, inside, known in (
        (points(3.0, 4.9), 1, 2), (points(1.0, 5.5), 2, 2), (points(0.9, np.nan), 0, 1),
    ):  # fmt: skip
        schedule = Schedule(trace, made)
        assert (inside * len(LOADS), known * len(LOADS)) == schedule.count_inside()
        assert inside * len(REQUIRED_LOADS) == schedule.count_inside(REQUIRED_LOADS)[0]
    assert [2.0, 5.5] == Schedule(points(1, 1), made).mean[:, 0].tolist()


# ---- requirements ----------------------------------------------------------------------------


def required(
    small: Minh2012Models, monkeypatch: pytest.MonkeyPatch, trace: str, **models: Arrivals
) -> dict[str, bool]:
    """Return which requirements hold of a trace of CV 10, Hurst 0.7 and zeros 0.3."""
    one = small.traces[trace]
    monkeypatch.setattr(
        "hpcrowd.scenarios.studies.minh2012_features.measures.published_jobs",
        lambda _: len(one.workload),
    )
    runs = ArrivalRuns(900.0, flat(10.0), {name: [a] for name, a in models.items()}, "plain", {})
    changed = replace(one, arrivals={**one.arrivals, 900.0: runs})
    return {need.what: need.holds for need in changed.requirements}


@pytest.mark.parametrize(
    ("plain", "modified", "held"),
    [(3.3, 7.6, (True, True)), (3.4, 7.6, (True, False)), (3.3, 7.4, (False, True))],
)
def test_burstiness_is_required_of_thunder(
    small: Minh2012Models,
    monkeypatch: pytest.MonkeyPatch,
    plain: float,
    modified: float,
    held: tuple[bool, bool],
) -> None:
    """The modified model needs three quarters of the trace's CV, the plain one under a third."""
    models = {"plain": flat(plain), "modified": flat(modified), CHOSEN: flat(modified)}
    found = required(small, monkeypatch, "LLN", **models)
    words = "CV of times between jobs over the trace's, {} model"
    assert held == tuple(found[words.format(name)] for name in ("modified", "plain"))


def test_the_nearer_model_counts_on_hpc(
    small: Minh2012Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One within a tenth of the trace's CV is enough; dependence and zeros count as well."""
    models = {"plain": flat(10.9), "modified": flat(15.0, zeros=0.33), CHOSEN: flat(9.0, 0.81)}
    found = required(small, monkeypatch, "HPC", **models)
    assert found["CV of times between jobs over the trace's, the nearer model (plain)"]
    assert not found["Hurst parameter, T = 900 s, chosen model"]
    assert not found["zeros of the rates, T = 900 s, modified model"]
    models |= {"plain": flat(8.9), "modified": flat(15.0, zeros=0.31), CHOSEN: flat(9.0, 0.79)}
    found = required(small, monkeypatch, "HPC", **models)
    assert not found["CV of times between jobs over the trace's, the nearer model (plain)"]
    assert found["Hurst parameter, T = 900 s, chosen model"]
    assert found["zeros of the rates, T = 900 s, modified model"]


def test_nothing_is_required_of_another_version(small: Minh2012Models) -> None:
    """A log with other jobs than Table 3.1 is shown, told, and required nothing of."""
    assert [] == list(small.requirements)
    assert "HPC: another version of the log" in " ".join(shown(small).split())


# ---- on small logs ---------------------------------------------------------------------------


@pytest.mark.slow
def test_folder_is_whole(small: Minh2012Models, tmp_path: Path) -> None:
    """The folder holds data, table, five pictures, page and provenance."""
    rows = rows_of_folder(small, tmp_path)
    assert {"HPC", "LLN"} == {row["trace"] for row in rows}
    assert {"arrivals", "jobs", "slowdown"} == {row["part"] for row in rows}
    assert 5 == len(list((tmp_path / "study").glob("*.png")))


def test_every_statement_is_checked_on_every_trace(small: Minh2012Models) -> None:
    """Each rule gives a claim for each trace, and traces that are absent are reported."""
    assert [(rule.name, name) for rule in RULES for name in small.traces] == [
        (claim.name, claim.setting) for claim in small.claims
    ]
    text = " ".join(shown(small).split())
    assert "Not available: NIK (not public)" in text
    assert "Not available: LAN, FS2, FS3 (no trace found)" in text


def test_other_ways_are_tried_on_thunder(small: Minh2012Models) -> None:
    """All ways are simulated on it, with twice the workloads where the way says so."""
    assert list(PLANNED) == list(small.traces["LLN"].schedules)
    assert ["thesis"] == list(small.traces["HPC"].schedules)
    assert 4 == len(small.traces["LLN"].schedules["twice"].workloads)
    assert ["thesis", "auto", "heavy"] == list(small.traces["HPC"].jobs)


@pytest.mark.slow
def test_results_do_not_depend_on_processes(small_folder: Path, small: Minh2012Models) -> None:
    """Two processes give what one gives."""
    again = reproduce_minh2012_models(small_folder, seeds=2, workers=2)
    assert small.to_json() == again.to_json()


def test_parts_of_the_page_are_marked(small: Minh2012Models, root: Path) -> None:
    """Every generated part has its place on the page."""
    page = (root / "docs" / "studies" / "minh2012-models.md").read_text()
    for name in small.page_parts():
        assert 1 == page.count(f"<!-- generated: {name} -->")
        assert 1 == page.count(f"<!-- end of {name} -->")


def test_numbers_that_make_no_sense_are_refused(small_folder: Path, tmp_path: Path) -> None:
    """One seed has no spread; a folder without traces is named with where to get one."""
    with pytest.raises(HpcrowdError, match="seeds 1: at least 2"):
        reproduce_minh2012_models(small_folder, seeds=1)
    with pytest.raises(HpcrowdError, match="workers 0: at least 1"):
        reproduce_minh2012_models(small_folder, workers=0)
    with pytest.raises(HpcrowdError, match="no trace of HPC, LLN"):
        reproduce_minh2012_models(tmp_path)


@pytest.mark.slow
def test_command_line(small_folder: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    """The command prints one JSON object; nothing required is all reached."""
    code, printed, _ = call(
        "reproduce", "minh2012-models", "--traces", small_folder, "--seeds", "2", "--json"
    )
    data = json.loads(printed)
    assert (0, "minh2012-models", 2) == (code, data["study"], data["seeds"])
