"""Minh 2012, chapter 3, is reproduced: published data, rules, results, on small logs."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.features.feature import Value
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.scenarios.studies.minh2012 import features as study
from hpcrowd.scenarios.studies.minh2012 import features_measures as measures
from hpcrowd.scenarios.studies.minh2012.features import (
    PANELS,
    RULES,
    Minh2012Features,
    figure_rows,
    sheet,
)
from hpcrowd.scenarios.studies.minh2012.features_measures import TABLES, published_figures
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.render import statement_table
from hpcrowd.scenarios.studies.study import claims_of

from tests.scenarios.studies.study_cases import shown


def cell_of(ours, printed, *, orders=(None, None), table=TABLES[1]):
    """Return a required figure with ours."""
    value = Value(ours) if ours is not None else Value(None, "no waits recorded")
    return measures.Cell(
        "HPC", table, table.figures[0], Printed(printed), value, *orders, required=True
    )


def test_every_published_figure_is_measured():
    """Each line of the tables has our figure and a rule; zeros at the end are digits."""
    assert 201_998 == measures.published_jobs("HPC")
    ours = [figure.name for table in TABLES for figure in table.figures]
    assert len(ours) == len(set(ours))
    traces = [row["trace"] for row in published_rows("minh2012_table3_1")]
    assert set(ours) == {figure.name for name in traces for _, figure, _ in published_figures(name)}
    found = {figure.name: printed for _, figure, printed in published_figures("LLN")}
    names = ("lognormal_mu", "gamma_scale_s", "generalized_pareto_scale_s")
    assert ["3.60", "438", "40.23"] == [found[name].text for name in names]
    assert {"3.12": ()} == {one.number: one.required for one in TABLES if one.rule == "-"}
    assert set(measures.STUDIED) == set(traces) - {"NOR", "AUV", "NIK"}


@pytest.mark.parametrize(
    ("number", "printed", "table", "reached"),
    [
        (5.6951, "5.70", 1, "digit"), (5.7049, "5.70", 1, "digit"),
        (5.7051, "5.70", 1, ""), (5.69, "5.70", 1, ""),
        (0.684, "0.70", 0, "within"), (0.719, "0.70", 0, "within"),
        (0.679, "0.70", 0, ""), (0.7201, "0.70", 0, ""), (None, "0.70", 0, ""),
    ],
)  # fmt: skip
def test_how_near_a_figure_is(number, printed, table, reached):
    """Half a unit of the last digit, Hurst parameters within 0.02, both ways; no value never is."""
    cell = cell_of(number, printed, table=TABLES[table])
    assert (reached, bool(reached)) == (cell.reached, cell.met)
    assert bool(reached) == (study.reached_text(cell) != "no")


def test_the_range_over_orders_counts_where_a_table_says_so():
    """A correlation lies in the range widened by 0.002 and half a digit; fits have to be met."""
    tables = {table.number: table for table in TABLES}
    for printed, reached in (("0.175", "orders"), ("0.172", ""), ("0.190", "")):
        cell = cell_of(0.1772, printed, orders=(0.1756, 0.1842), table=tables["3.16"])
        assert (reached, bool(reached)) == (cell.reached, cell.met)
    fit = cell_of(480.8, "475.43", orders=(469.8, 480.9), table=tables["3.9"])
    assert ("orders", False) == (fit.reached, fit.met)
    assert "orders" not in tables["3.9"].rule
    assert "0.002" in tables["3.16"].rule


def test_figures_are_required_of_the_log_of_the_thesis(small, monkeypatch):
    """As many jobs as Table 3.1 says, one more or fewer: required, and missed; else only told."""
    assert [] == list(small.requirements)
    text = " ".join(shown(small).split())
    assert "HPC: 70" in text
    assert "nothing is required of it" in text
    one = small.traces["HPC"]
    module = "hpcrowd.scenarios.studies.minh2012.features_measures.published_jobs"
    for off, that in ((0, True), (1, True), (-1, True), (2, False), (-2, False)):
        jobs = len(one.workload) + off
        monkeypatch.setattr(module, lambda _, n=jobs: n)
        again = Minh2012Features({"HPC": replace(one)})
        assert (that, not that) == (bool(again.requirements), again.reached)


def test_orders_move_only_jobs_of_the_same_second():
    """Within a second the given numbers decide; ranges hold the first order, if there is any."""
    workload = Workload.of([0, 5, 5, 5, 9], [1, 2, 3, 4, 5], user=[1, 2, 3, 4, 5])
    other = measures.reordered(workload, np.arange(5)[::-1])
    assert [0, 5, 5, 5, 9] == other.submit.tolist()
    assert [1, 4, 3, 2, 5] == other.user.tolist()
    assert [1, 4, 3, 2, 5] == other.run_time.tolist()
    user = [1, 1, 2, 1, 1, 2, 2, 2]
    workload = Workload.of([0, 0, 0, 0, 500, 500, 500, 500], [1.0] * 8, user=user)
    low, high = measures.ranges(workload, ["jobs_in_bags_share"])["jobs_in_bags_share"]
    assert low < 6 / 8 <= high
    assert {} == measures.ranges(workload, ["bag_wait_share"])


def test_what_is_measured_and_what_is_not(small):
    """The nearer version; absent traces have a reason; statements may stay open."""
    facts = small.traces["HPC"].facts
    assert "HPC2N-2002-2.1-cln.swf" == facts["source"]
    assert ["HPC2N-2002-2.2-cln.swf"] == facts["other_versions"]
    assert 14 == len(small.absent)
    assert "Grid Workloads Archive, in another format" == small.absent["AUV"]
    assert "not HPC2N-2002-2.2-cln.swf" in " ".join(shown(small).split())
    numbers = [cell.table.number for cell in small.cells]
    assert sorted(numbers, key=lambda number: int(number[2:])) == numbers
    workload = Workload.of([0, 1000, 2000], [10.0, 20.0, 5.0], user=[1, 2, 3])
    found = {claim.name: claim for claim in claims_of(RULES, {"FS1": workload})}
    assert found["run times of bags"].holds is None
    assert "not available: no bag" in found["run times of bags"].text
    cycle = "HPC: daily cycle of bags"
    assert (False, True) == (cycle in found, cycle in {claim.name for claim in small.claims})


def test_panels_say_what_cannot_be_drawn():
    """A trace of four jobs gets a sheet whose panels are drawn or say why not."""
    workload = Workload.of([0, 1000, 2000, 4000], [10.0, 20.0, 5.0, 7.0], user=[1, 2, 3, 4])
    figure = sheet(measures.study_trace("FS4", workload))
    assert len(PANELS) == len(figure.axes)
    assert [] == [axes for axes in figure.axes if not (axes.has_data() or axes.texts)]


def test_one_trace_is_measured_alone(input_of, small):
    """What is found of a trace does not depend on the others in the folder."""
    alone = study.reproduce_minh2012_features(input_of(small.name), only=["LLN"]).traces["LLN"]
    assert [cell.ours for cell in small.traces["LLN"].cells] == [cell.ours for cell in alone.cells]


FILES = {
    "FS1": "DAS2-fs1-2003-1",
    "HPC": "HPC2N-2002-2.1-cln",
    "LLN": "LLNL-Thunder-2007-1.1-cln",
    "SDD": "SDSC-DS-2004-2.1-cln",
}

#: Figures that are required of each trace.
REQUIRED = {"FS1": 2, "HPC": 19, "LLN": 30, "SDD": 2}


@pytest.fixture(scope="module", params=FILES)
def real(request, read_trace):
    """Return the study on one real trace."""
    file = FILES[request.param]
    workload = Workload.from_trace(read_trace(file), name=file)
    return Minh2012Features({request.param: measures.study_trace(request.param, workload)})


@pytest.mark.slow
@pytest.mark.traces
def test_what_is_reached(real):
    """All that is required; the page has which figures are reached to the digit, and statements."""
    assert [] == real.failures
    assert [REQUIRED[name] for name in real.traces] == [len(real.requirements)]


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_figures(real, page):
    """Every line of the page's tables is as computed, digit by digit."""
    lines = page.splitlines()
    for fits in (False, True):
        for row in figure_rows(real, fits):
            assert f"| {' | '.join(row)} |" in lines
    cells = [line.split(" | ") for line in lines]
    for statement, found in statement_table(real.claims, real.traces).rows:
        (line,) = (line for line in cells if line[0] == f"| {statement}")
        assert found == line[1 + list(FILES).index(*real.traces)].removesuffix(" |")


@pytest.mark.slow
@pytest.mark.traces
def test_other_version_of_hpc2n_is_reported(read_trace):
    """HPC2N 2.2 lacks five early jobs: another CV, and nothing is required of it."""
    workload = Workload.from_trace(read_trace("HPC2N-2002-2.2-cln"))
    found = measures.study_trace("HPC", workload)
    assert not found.is_that_of_the_thesis
    assert [] == [cell for cell in found.cells if cell.required]
    (cell,) = (cell for cell in found.cells if cell.figure.name == "interarrival_cv")
    assert ("5.642", "") == (cell.text, cell.reached)
