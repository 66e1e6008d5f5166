"""Minh 2012, chapter 3, is reproduced: published data, rules, results, on small logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.features.feature import Value
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.minh2012_features.figures import PANELS, sheet
from hpcrowd.scenarios.studies.minh2012_features.measures import (
    STUDIED,
    Cell,
    TraceOutcomes,
    published_jobs,
    ranges,
    reasons_of,
    reordered,
    study_trace,
)
from hpcrowd.scenarios.studies.minh2012_features.statements import RULES
from hpcrowd.scenarios.studies.minh2012_features.study import (
    Minh2012Features,
    reached_text,
    reproduce_minh2012_features,
)
from hpcrowd.scenarios.studies.minh2012_features.tables import (
    CHECKED,
    TABLES,
    Table,
    published_figures,
)
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.running import log_name
from hpcrowd.scenarios.studies.study import claims_of
from matplotlib.figure import Figure as Drawing

from tests.scenarios.studies.study_cases import rows_of_folder, shown


def bursty_log(make_trace: Callable[..., Trace], seed: int, jobs: int = 600) -> Trace:
    """Return a log of 20 days in which users submit the same job several times after each other."""
    random = np.random.default_rng(seed)
    made: list[dict[str, float]] = []
    while len(made) < jobs:
        submit = int(random.integers(0, 20 * DAY))
        common = {
            "requested_processors": int(random.integers(1, 9)),
            "requested_time": 3600,
            "user": int(random.integers(1, 6)),
            "status": 1,
        }
        for _ in range(int(random.geometric(0.4))):
            submit += int(random.integers(0, 60))
            run = int(random.integers(0, 3000))
            made.append(
                {"submit": submit, "run": run, "wait": int(random.integers(0, 99)), **common}
            )
    made.sort(key=lambda job: job["submit"])
    return make_trace(*made, header="; MaxProcs: 16\n; UnixStartTime: 1041375600")


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with two small logs in the place of HPC2N's versions, one of Thunder."""
    folder = tmp_path_factory.mktemp("traces")
    write_swf(bursty_log(make_trace, 1, 700), folder / "HPC2N-2002-2.1-cln.swf")
    write_swf(bursty_log(make_trace, 2, 300), folder / "HPC2N-2002-2.2-cln.swf")
    write_swf(bursty_log(make_trace, 3), folder / "LLNL-Thunder-2007-1.1-cln.swf")
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Minh2012Features:
    """Return the study on the small logs."""
    return reproduce_minh2012_features(small_folder)


def cell_of(
    ours: float | None,
    printed: str,
    *,
    orders: tuple[float, float] | None = None,
    table: Table = TABLES[1],
) -> Cell:
    """Return a required figure with ours."""
    value = Value(ours) if ours is not None else Value(None, "no waits recorded")
    return Cell("HPC", table, table.figures[0], Printed(printed), value, orders, required=True)


# ---- published data --------------------------------------------------------------------------


def test_published_tables_are_whole() -> None:
    """Sixteen traces, 21 figures of eighteen tables and six lines of fits; a few as printed."""
    traces = [row["trace"] for row in published_rows("minh2012_table3_1")]
    figures = {row["figure"]: row for row in published_rows("minh2012_chapter3")}
    fits = {row["trace"]: row for row in published_rows("minh2012_bag_fits")}
    assert 16 == len(set(traces))
    assert 21 == len(figures)
    assert {*traces} == {*next(iter(figures.values()))} - {"table", "figure", "unit"}
    assert ["FS0", "FS2", "FS3", "HPC", "LLN", "NIK"] == list(fits)
    assert 141 == sum(bool(row[trace]) for row in figures.values() for trace in traces)
    assert "10.00" == figures["interarrival_cv"]["LLN"]
    assert "-0.310" == figures["bag_size_processors_spearman"]["FS3"]
    assert ("%", "89") == tuple(figures["jobs_in_bags"][name] for name in ("unit", "FS3"))
    assert "12826" == fits["FS3"]["gamma_scale_s"]
    assert "0.286" == fits["NIK"]["exponential_ks"]
    assert 201_998 == published_jobs("HPC")


def test_every_published_figure_is_measured() -> None:
    """Each line of the tables has our figure, and each is met by some trace."""
    ours = [figure.name for table in TABLES for figure in table.figures]
    assert len(ours) == len(set(ours))
    fits = {name for name in published_rows("minh2012_bag_fits")[0] if name != "trace"}
    printed = {row["figure"] for row in published_rows("minh2012_chapter3")} | fits
    assert printed - {"generalized_pareto_threshold_s"} == set(ours)
    traces = [row["trace"] for row in published_rows("minh2012_table3_1")]
    assert set(ours) == {figure.name for name in traces for _, figure, _ in published_figures(name)}
    assert list(dict.fromkeys(table.number for table in TABLES)) == [
        f"3.{number}" for number in range(2, 21)
    ]


def test_zeros_left_out_at_the_end_are_digits_too() -> None:
    """Table 3.9 prints 3.6 for a mean of logs with two digits; it counts as 3.60."""
    found = {figure.name: printed for _, figure, printed in published_figures("LLN")}
    assert ("3.60", "438", "40.23") == tuple(
        found[name].text for name in ("lognormal_mu", "gamma_scale_s", "generalized_pareto_scale_s")
    )


# ---- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "printed", "reached"),
    [
        (5.6951, "5.70", "digit"),
        (5.7049, "5.70", "digit"),
        (5.7051, "5.70", ""),
        (5.69, "5.70", ""),
    ],
)
def test_a_figure_to_the_digit_rounds_to_the_published_one(
    number: float, printed: str, reached: str
) -> None:
    """Half a unit of the last digit on both sides, no more."""
    assert reached == cell_of(number, printed).reached


def test_tolerances_have_two_sides() -> None:
    """Hurst parameters count within 0.02, above and below; no value counts as not reached."""
    hurst = TABLES[0]
    for number, reached in ((0.684, "within"), (0.719, "within"), (0.679, ""), (0.7201, "")):
        assert reached == cell_of(number, "0.70", table=hurst).reached
    nothing = cell_of(None, "0.70", table=hurst)
    assert ("", False, "no") == (nothing.reached, nothing.met, reached_text(nothing))


def test_the_range_over_orders_counts_where_a_table_says_so() -> None:
    """A correlation lies in the range widened by 0.002 and half a digit; fits have to be met."""
    tables = {table.number: table for table in TABLES}
    for printed, reached in (("0.175", "orders"), ("0.172", ""), ("0.190", "")):
        cell = cell_of(0.1772, printed, orders=(0.1756, 0.1842), table=tables["3.16"])
        assert (reached, bool(reached)) == (cell.reached, cell.met)
    fit = cell_of(480.8, "475.43", orders=(469.8, 480.9), table=tables["3.9"])
    assert ("orders", False) == (fit.reached, fit.met)
    assert "orders" not in tables["3.9"].rule
    assert "0.002" in tables["3.16"].rule


def test_rules_name_logs_and_reasons() -> None:
    """Every table shows why it is required so, and on which logs; every log that can be had."""
    for table in TABLES:
        assert table.reason
        assert table.required is None or set(table.required) <= set(CHECKED)
    assert [] == [table.number for table in TABLES if table.required == () and table.rule != "-"]
    assert {"3.12"} == {table.number for table in TABLES if table.required == ()}
    assert set(STUDIED) == {row["trace"] for row in published_rows("minh2012_table3_1")} - {
        "NOR", "AUV", "NIK",
    }  # fmt: skip


def test_nothing_is_required_of_another_version(small: Minh2012Features) -> None:
    """A log with other jobs than Table 3.1 is shown, told, and required nothing of."""
    assert [] == list(small.requirements)
    assert "HPC: 70" in shown(small).replace("\n", " ")
    assert "nothing is required of it" in " ".join(shown(small).split())


def test_figures_are_required_of_the_log_of_the_thesis(
    small: Minh2012Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many jobs as Table 3.1 says, one more or fewer, figures are required and missed."""
    one = small.traces["HPC"]
    for off, that in ((0, True), (1, True), (-1, True), (2, False), (-2, False)):
        jobs = len(one.workload) + off
        monkeypatch.setattr(
            "hpcrowd.scenarios.studies.minh2012_features.measures.published_jobs",
            lambda _, n=jobs: n,
        )
        again = Minh2012Features({"HPC": replace(one)})
        assert that == bool(again.requirements)
        assert that is not again.reached
    monkeypatch.undo()


# ---- orders ----------------------------------------------------------------------------------


def test_orders_move_only_jobs_of_the_same_second() -> None:
    """Submissions stay where they are; within a second the given numbers decide."""
    workload = Workload.of([0, 5, 5, 5, 9], [1, 2, 3, 4, 5], user=[1, 2, 3, 4, 5])
    other = reordered(workload, np.arange(5)[::-1])
    assert [0, 5, 5, 5, 9] == other.submit.tolist()
    assert [1, 4, 3, 2, 5] == other.user.tolist()
    assert [1, 4, 3, 2, 5] == other.run_time.tolist()


def test_ranges_hold_the_first_order() -> None:
    """Bags that an order tears apart have a range around ours; nothing to measure has none."""
    user = [1, 1, 2, 1, 1, 2, 2, 2]
    workload = Workload.of([0, 0, 0, 0, 500, 500, 500, 500], [1.0] * 8, user=user)
    low, high = ranges(workload, ["jobs_in_bags_share"])["jobs_in_bags_share"]
    assert low < 6 / 8 <= high
    assert {} == ranges(workload, ["bag_wait_share"])


# ---- on small logs ---------------------------------------------------------------------------


def test_the_version_nearest_to_the_thesis_is_measured(small: Minh2012Features) -> None:
    """Of two versions the one with more of the jobs of Table 3.1 is taken, the other is named."""
    facts = small.traces["HPC"].facts
    assert "HPC2N-2002-2.1-cln.swf" == facts["source"]
    assert ["HPC2N-2002-2.2-cln.swf"] == facts["other_versions"]
    assert "not HPC2N-2002-2.2-cln.swf" in " ".join(shown(small).split())
    assert "HPC2N-2002-2.1-cln" == log_name(Path("HPC2N-2002-2.1-cln.swf.gz"))


def test_traces_that_are_absent_are_reported(small: Minh2012Features) -> None:
    """Each trace of Table 3.1 is measured or named, with the reason."""
    assert {"HPC", "LLN"} == set(small.traces)
    assert 14 == len(small.absent)
    assert "not public" == reasons_of(small.absent)["NIK"]
    assert "Grid Workloads Archive, in another format" == reasons_of(small.absent)["AUV"]
    assert "no trace found" == reasons_of(small.absent)["FS2"]
    text = " ".join(shown(small).split())
    assert "Not measured: NIK (not public)" in text
    assert "FS0, FS1, FS2, FS3, FS4, OSC, LLU, LLA, SDB, SDD, LAN (no trace found)" in text


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    """The message names the traces and where one is."""
    with pytest.raises(HpcrowdError, match=r"no trace of FS0, .* fetch one, such as DAS2-fs0"):
        reproduce_minh2012_features(tmp_path)


@pytest.mark.slow
def test_folder_is_whole(small: Minh2012Features, tmp_path: Path) -> None:
    """The folder holds data, table, a sheet for each trace, page and provenance."""
    rows = rows_of_folder(small, tmp_path)
    assert len(small.cells) == len(rows) == len(small.to_json()["figures"])
    assert {"hpc.png", "lln.png"} == {path.name for path in (tmp_path / "study").glob("*.png")}
    data = json.loads((tmp_path / "study" / "minh2012-features.json").read_text())
    assert ["HPC", "LLN"] == list(data["traces"])
    assert len(TABLES) == len(data["rules"])


def test_tables_go_by_number(small: Minh2012Features) -> None:
    """Figures of all traces stand together, table by table."""
    numbers = [cell.table.number for cell in small.cells]
    assert sorted(numbers, key=lambda number: int(number[2:])) == numbers


@pytest.mark.parametrize("panel", PANELS)
def test_panels_say_what_cannot_be_drawn(panel: Callable[..., None]) -> None:
    """A trace of four jobs gets a sheet whose panels are drawn or say why not."""
    workload = Workload.of([0, 1000, 2000, 4000], [10.0, 20.0, 5.0, 7.0], user=[1, 2, 3, 4])
    figure = sheet(study_trace("FS4", workload))
    axes = figure.axes[PANELS.index(panel)]
    assert isinstance(figure, Drawing)
    assert axes.has_data() or axes.texts


def test_statements_stay_open_where_a_trace_does_not_tell(small: Minh2012Features) -> None:
    """Without bags of two nothing is found of them, and the statement neither holds nor fails."""
    workload = Workload.of([0, 1000, 2000], [10.0, 20.0, 5.0], user=[1, 2, 3])
    found = {claim.name: claim for claim in claims_of(RULES, {"FS1": workload})}
    assert found["run times of bags"].holds is None
    assert "not available: no bag" in found["run times of bags"].text
    assert {rule.name for rule in RULES if rule.settings is None} <= set(found)
    assert "HPC: daily cycle of bags" not in found
    assert "HPC: daily cycle of bags" in {claim.name for claim in small.claims}


def test_parts_of_the_page_are_marked(small: Minh2012Features, root: Path) -> None:
    """Every generated part has its place on the page."""
    page = (root / "docs" / "studies" / "minh2012-features.md").read_text()
    for name in small.page_parts():
        assert 1 == page.count(f"<!-- generated: {name} -->")
        assert 1 == page.count(f"<!-- end of {name} -->")


@pytest.mark.slow
def test_command_line(
    small_folder: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    """The command writes the folder and prints one JSON object; nothing required is all reached."""
    out = tmp_path / "out"
    code, printed, _ = call(
        "reproduce", "minh2012-features", "--traces", small_folder, "--out", out, "--json"
    )
    assert 0 == code
    assert "minh2012-features" == json.loads(printed)["study"]
    assert (out / "provenance.json").exists()
    code, _, error = call("reproduce", "minh2012-features", "--traces", tmp_path)
    assert (2, True) == (code, "no trace of FS0" in error)


def test_one_trace_is_measured_alone(small_folder: Path, small: Minh2012Features) -> None:
    """What is found of a trace does not depend on the others in the folder."""
    alone: TraceOutcomes = reproduce_minh2012_features(small_folder, only=["LLN"]).traces["LLN"]
    assert [cell.ours for cell in small.traces["LLN"].cells] == [cell.ours for cell in alone.cells]
