"""The rebound scenario: throughput against speed, by kind of users."""

from functools import partial

import numpy as np
import pytest
from hpcrowd import Work
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import ModelFitError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.studies.rebound import run as rebound
from hpcrowd.scenarios.studies.rebound.run import MEASURES, Rebound, pause_slope, rebound_of
from hpcrowd.scenarios.studies.render import page_parts

from tests.support.populations import record, small_log

SPEEDS = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def log(make_trace):
    """Return a log of 12 users, half of them long-term."""
    return small_log(make_trace)


@pytest.fixture(scope="module")
def found(log):
    """Return the study with two populations."""
    return rebound.run_rebound(log, speeds=SPEEDS, seeds=2)


def made(**used):
    """Return a study of one kind of users with node-hours by speed, such as ``x2``."""
    accounts = {
        float(name[1:]): [{"throughput_node_h_per_week": value} for value in values]
        for name, values in used.items()
    }
    return Rebound("made", {"users": accounts}, {"seeds": 2, "scheduler": "easy"})


@pytest.mark.parametrize(
    ("used", "speed", "expected"),
    [(50, 2, 0), (75, 2, 0.5), (100, 2, 1), (110, 2, 1.2), (10, 4, -0.2)],
)
def test_rebound_is_the_part_of_the_saving_that_is_used(used, speed, expected):
    """Half of 100 hours at twice the speed is none, as many as before all, more still more."""
    assert expected == pytest.approx(rebound_of(used, 100, speed))


def test_multiples_are_taken_seed_by_seed():
    """Two populations of different size that both double have no spread."""
    study = made(x1=[100, 300], x2=[200, 600])
    twice = study.relative("users", 2.0, "throughput_node_h_per_week")
    assert (2, 2, 2) == (twice.mean, twice.low, twice.high)
    assert [["users", "-", "300 ± 0"]] == rebound.rebound_rows(study)


def test_every_kind_of_users_runs_at_every_speed(found):
    """The replay once; rigid users submit the same; tables and picture show all."""
    assert [*rebound.USERS, rebound.REPLAY] == list(found.accounts)
    assert list(SPEEDS) == found.speeds
    for users, by_speed in found.accounts.items():
        count = 1 if users == rebound.REPLAY else 2
        assert [count] * 3 == [len(runs) for runs in by_speed.values()]
    assert dict.fromkeys(found.accounts, 1.0) == {
        users: found.relative(users, 1.0, "throughput_jobs_per_week").mean
        for users in found.accounts
    }

    def submitted(users, speed):
        return found.values(users, speed, "jobs_per_week_mean")

    assert submitted("rigid", 0.5) == submitted("rigid", 1.0) == submitted("rigid", 2.0)
    for users in ("think-time", "semi-open"):
        assert sum(submitted(users, 0.5)) < sum(submitted(users, 1.0)) < sum(submitted(users, 2.0))
    relative = rebound.relative_rows(found, "throughput_jobs_per_week")
    for rows in (relative, rebound.rebound_rows(found)):
        assert list(found.accounts) == [row[0] for row in rows]
        assert {1 + len(SPEEDS)} == {len(row) for row in rows}
    assert len(MEASURES) * len(found.accounts) == len(rebound.absolute_rows(found))
    figure = rebound.draw_rebound(found)
    assert 3 == len(figure.axes)
    (legend,) = figure.legends
    assert {*rebound.USERS, rebound.REPLAY} == {text.get_text() for text in legend.get_texts()}


def test_the_page_has_a_place_for_every_part(found, log, page):
    """What is generated is on the page, and nothing else is."""
    variants = rebound.run_rebound(
        log, {"habit": {"satisfaction": "habit"}}, (0.5, 1.0), seeds=2, replayed=False
    )
    assert 1 == len(rebound.variant_table(variants).rows)
    tables = [*rebound.tables(found), rebound.variant_table(variants)]
    parts = page_parts(rebound.summary_lines(found), tables)
    assert {*parts, "draws", "logs", "slopes"} == {
        line.split()[2] for line in page.splitlines() if line.startswith("<!-- generated: ")
    }
    assert all(parts.values())


def test_the_script_prints_tables(log, tmp_path, monkeypatch, capsys):
    """For the trace given; what is wrong is one line; slopes have a row for each log."""
    write_swf(log, tmp_path / "log.swf")
    small = partial(rebound.run_rebound, speeds=SPEEDS, seeds=1)
    monkeypatch.setattr(rebound, "run_rebound", small)
    assert 0 == rebound.main([str(tmp_path / "log.swf")])
    printed = " ".join(capsys.readouterr().out.split())  # titles are broken into lines
    assert "semi-open" in printed
    assert "Rebound: part of the saved node-hours" in printed
    assert 2 == rebound.main([str(tmp_path / "none.swf")])
    assert capsys.readouterr().err.startswith("rebound: ")
    assert 2 == rebound.main([])
    assert "usage: python -m hpcrowd.scenarios.studies.rebound.run TRACE" in capsys.readouterr().err
    write_swf(log, tmp_path / "log.swf")
    table = rebound.slopes_rows({"small": tmp_path / "log.swf"})
    assert "| log | between sessions | between batches |" == table.splitlines()[0]
    assert table.splitlines()[-1].startswith("| small | ")


def pausing(slope, *, users=3, scale=1.0):
    """Return sessions of users who pause by a power of the response before; each at its level."""
    rows, random = [], np.random.default_rng(2)
    for user in range(1, users + 1):
        at = 0
        for _ in range(30):
            run = int(random.integers(4000, 50_000))
            rows.append((user, at, run, 1, 0))
            at += run + round(scale * user * 4000 * (run / 4000) ** slope)
    rows.sort(key=lambda row: row[1])
    return Work.of(record(rows)).by_session


@pytest.mark.parametrize("slope", [0.3, 0.5, 0.8])
def test_the_slope_is_found_again(slope):
    """Whatever the level of each user."""
    assert pytest.approx(slope, abs=0.01) == pause_slope(pausing(slope), grace=0)


def test_absences_do_not_count():
    """Pauses of a week and more are left out; without different responses there is no slope."""
    units = pausing(0.8, users=1, scale=30)
    assert (units.think_time >= WEEK).any()
    assert pytest.approx(0.8, abs=0.01) == pause_slope(units, grace=0)
    rows = [(1, k * 100_000, 5000, 1, 0) for k in range(5)]
    with pytest.raises(ModelFitError, match="pauses: 4 of them: no user paused after two"):
        pause_slope(Work.of(record(rows)).by_session)
