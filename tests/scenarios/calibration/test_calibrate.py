"""``hpcrowd calibrate``: known users are found again, bytes repeat, mistakes take one line."""

import json
import sys
import tempfile
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import calibrate
from hpcrowd.analysis.calibration.regression import posterior_of
from hpcrowd.calibration import read_posterior, write_posterior
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.calibration import calibrate as calibrating
from hpcrowd.scenarios.calibration.calibrate import read_subject
from hpcrowd.scenarios.commands.models import calibrate as calibrate_command
from hpcrowd.scenarios.terminal import standard_output

from tests.analysis.calibration.calibration_cases import (
    NAMES,
    POPULATION,
    TRUTH,
    made_table,
    write_known,
    write_population,
)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Return a log of users who are known."""
    return write_known(tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def found(known):
    """Return a calibration to it."""
    return calibrate(write_population(known.parent), known, draws=100, truths=20, predictive=12)


def test_known_users_are_found(found):
    """The log shrinks both parameters, to intervals with the truth; simulations are like it."""
    posterior = found.posterior
    assert NAMES == tuple(prior.name for prior in posterior.priors)
    for place, truth in enumerate(TRUTH.values()):
        low, high = posterior.quantiles(place, (0.005, 0.995))
        assert low <= truth <= high
        assert posterior.shrinkage(place) > 0.3
    assert not found.outside
    lines = {line.name: line for line in posterior.statistics}
    for name in ("think_p50_s", "think_slow_p50_s"):
        assert lines[name].record / 2 < lines[name].median < 2 * lines[name].record
    assert found.likeness > 0.05


def test_the_same_seed_gives_the_same_bytes(known):
    """Another one does not; neither do other statistics."""

    def run(**changes):
        given = {"draws": 40, "days": 1, "predictive": 2} | changes
        found = calibrate(write_population(known.parent), known, **given)
        write_posterior(found.posterior, known.parent / "p.json", known.parent)
        return found, (known.parent / "p.json").read_bytes()

    one, first = run()
    assert first == run()[1]
    other, _ = run(seed=1)
    assert (other.table.values != one.table.values).all()
    thinks, _ = run(compare=["think"])
    assert (thinks.table.statistics == one.table.statistics).all()
    assert thinks.posterior.drawn.distances != pytest.approx(one.posterior.drawn.distances)


def test_what_is_free(tmp_path, known):
    """Options replace priors of the file; names are those in it; durations are whole seconds."""
    free = ["users.0.line.slope=0.1..0.5", "users.0.hours.closes=14h..20h",
            "users.0.hours.opens=6h..9h"]  # fmt: skip
    subject = read_subject(write_population(tmp_path), free, known)
    assert {
        "users.users.0.line.slope": (0.1, False),
        "users.users.0.line.intercept": (300, True),
        "users.users.0.hours.closes": (14 * 3600, True),
        "users.users.0.hours.opens": (6 * 3600, True),
    } == {prior.name: (prior.low, prior.whole) for prior in subject.priors}
    text = '[scenario]\nkind = "resample"\ndays = 7\nwarm_up = 0\nsatisfaction = "requested"\n'
    path = write_population(tmp_path, text + '[free]\nconsequences.leave = "0..0.5"\n', "s.toml")
    subject = read_subject(path, (), known)
    assert ["consequences.leave"] == [prior.name for prior in subject.priors]
    assert 0.25 == subject.scenario([0.25]).consequences.leave


def test_the_command_prints_and_writes(tmp_path, known, found, call, monkeypatch):
    """Parameters by their names in the file, the log beside predictions, and the check."""
    monkeypatch.setattr(calibrating, "calibrate", lambda *_, **__: found)
    monkeypatch.setenv("COLUMNS", "120")
    path, out = write_population(tmp_path), tmp_path / "p.json"
    code, text, said = call("calibrate", path, known, "-o", out)
    assert (0, f"The posterior is {out}\n") == (code, said)
    by_chance = "28 to 72 % and 77 to 100 % are expected by chance."
    for words in ("users.0.line.slope", "log 5.0 min to 2.0 h", "20 logs simulated", by_chance):
        assert words in text
    assert read_posterior(out).settings == found.posterior.settings
    code, text, _ = call("calibrate", path, known, "--json")
    wire = json.loads(text)
    assert (0, 20, []) == (code, wire["check"]["truths"], wire["outside"])
    assert len(found.posterior) == len(wire["draws"])


def test_a_parameter_that_a_log_says_nothing_about_is_named(found, capsys):
    """Its spread is nearly that of its prior; so is what users of this kind cannot have."""
    table = made_table(200)
    drawn = posterior_of(table, table.statistics[0])
    posterior = replace(found.posterior, priors=table.priors, drawn=drawn)
    shown = replace(found, posterior=posterior, outside=["night"], likeness=0.0, coverage=None)
    calibrate_command.show(shown, standard_output())
    text = capsys.readouterr().out
    assert "The log says little about nothing: its spread is nearly that of the prior." in text
    assert "about a:" not in text
    assert "Left out, as no draw of the prior has what the log has: night" in text
    assert "No draw of the prior is like the log in all statistics together" in text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('[[users]]\nbehaviour = "linear"\n[free]\nx = 3\n', "line 4: free x 3: not two bounds"),
        ('free = 3\n[[users]]\nbehaviour = "linear"\n', "free"),
        ('[scenario]\nkind = "grid"\n', "line 2: kind 'grid': cannot be calibrated"),
        ('[scenario]\nkind = "replay"\n[free]\nsessions = "0..1"\n', "free sessions: is used"),
        ('[scenario]\nkind = "replay"\n[free]\nseed = "0..1"\n', "free seed: is used"),
    ],
)
def test_mistakes_in_a_file_have_their_place(tmp_path, known, text, rule):
    """File, line, value and rule."""
    with pytest.raises(QuantityError, match=rule):
        read_subject(write_population(tmp_path, text, "x.toml"), (), known)


def test_a_population_with_free_parameters_can_be_replayed(tmp_path, known, call, monkeypatch):
    """A replay takes the values of the file; without pyabc a message says what to install."""
    code, with_free, _ = call("replay", known, "--users", write_population(tmp_path), "--json")
    assert 0 == code
    without = write_population(tmp_path, POPULATION.partition("[free]")[0])
    assert with_free == call("replay", known, "--users", without, "--json")[1]
    monkeypatch.setitem(sys.modules, "pyabc", None)
    code, _, said = call("calibrate", write_population(tmp_path), known, "--method", "smc")
    assert 2 == code
    assert 'smc: pyabc is not installed; pip install "hpcrowd[calibration]"\n' in said


@pytest.mark.slow
def test_smc_repeats_and_leaves_nothing(tmp_path, known, monkeypatch):
    """The same seed gives the same draws; numpy's stream goes on as if nothing had happened."""
    pytest.importorskip("pyabc", reason="no pyabc: pip install 'hpcrowd[calibration]'")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_population(known.parent)

    def search():
        return calibrate(path, known, draws=60, method="smc", predictive=12).posterior

    np.random.seed(4)  # noqa: NPY002
    first = search()
    after = np.random.random()  # noqa: NPY002
    np.random.seed(4)  # noqa: NPY002
    assert after == np.random.random()  # noqa: NPY002
    assert first.to_json() == search().to_json()
    assert [] == list(tmp_path.iterdir())
    assert first.shrinkage(0) > 0.2
    low, high = first.quantiles(0, (0, 1))
    assert low <= TRUTH["slope"] <= high
