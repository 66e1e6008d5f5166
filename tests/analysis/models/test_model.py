"""Workload models: targets of generated workloads, files, what goes wrong, and judgements."""

import json
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from hpcrowd import generate, generate_swf, parse_swf
from hpcrowd.analysis.models.judgement import Spread, format_spread, judgement_html, within
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import ModelFileError, ModelFitError, QuantityError
from hpcrowd.features import FEATURES, Workload
from hpcrowd.models import judge, published, read_model, write_model

from tests.analysis.features.feature_cases import poisson_workload

FEW = poisson_workload(10, 1, 1)


@pytest.fixture(scope="module")
def fitted():
    """Return a model fitted to random jobs."""
    return fit("locality", poisson_workload(600, 300, 1))


def test_a_cycle_is_kept_also_at_another_load():
    """With the trace's week imposed, most jobs come when they came there; targets are met."""
    hours = np.tile(np.r_[np.zeros(8), np.ones(10), np.zeros(6)], 21)
    days = np.flatnonzero(hours) * 3600.0
    trace = Workload.of(np.sort(np.r_[days, days + 900, days + 1800]), 600, 4, machine=32)
    model = fit("locality", trace, cycle="weekly")
    for load in (None, 0.6):
        made = generate(model, days=60, load=load)
        hour = made.drawn.submit // 3600 % 24
        assert ((hour >= 8) & (hour < 18)).mean() > 0.98
        assert made.drawn.submit[-1] / DAY == pytest.approx(60, rel=0.02)
    assert made.load == pytest.approx(0.6, rel=0.02)


def test_the_trace_reads_back_strictly(fitted):
    """What is generated is a trace that the strict reader takes, with header and notes."""
    found = generate(replace(fitted, requests=None), jobs=100)
    again = parse_swf(generate_swf(found.trace()))
    assert 128 == again.processors
    assert "model locality" in again.header.get("Computer")
    assert found.drawn.submit.tolist() == again["submit"].tolist()
    # No model gave requested times: jobs ask for what they need, and the header says so.
    assert np.maximum(again["run"], 1).tolist() == again["requested_time"].tolist()
    assert {-1} == set(again["wait"].tolist())
    told = b" ".join(again.header.lines)
    assert b"waits are -1" in told
    assert b"requested times are run times" in told


def test_a_file_keeps_the_model(fitted, tmp_path):
    """Written and read, it is the same; the file says what it is and where it is from."""
    path = tmp_path / "m.json"
    write_model(fitted, path)
    assert fitted == read_model(path)
    wire = json.loads(path.read_text())
    found = (wire["format"], wire["version"], wire["model"], wire["provenance"]["jobs"])
    assert ("hpcrowd workload model", 1, "locality", 600) == found


@pytest.mark.parametrize(("change", "message"), [
    ({"version": 2}, "version 2, but this hpcrowd reads only up to 1"),
    ({"format": "soup"}, "not a workload model; make one with hpcrowd fit"),
    ({"machine": 0}, "machine 0: must be from 1 to"),
    ({"load": "much"}, "load 'much': must be positive or null"),
    ({"jobs": ...}, "damaged: no 'jobs'"),
    ({"arrivals": {"name": "poisson", "mean_gap_s": -1}}, "mean_gap_s: -1: input should be"),
    ({"jobs": {"name": "locality", "soup": 1}}, "soup|classes"),
    ("{", "damaged, not JSON"),
    (None, "cannot be read: No such file"),
])  # fmt: skip
def test_a_damaged_file_is_one_clear_line(fitted, tmp_path, change, message):
    """Newer, foreign and damaged files are refused with the place and the rule."""
    path = tmp_path / "m.json"
    if isinstance(change, dict):
        write_model(fitted, path)
        wire = json.loads(path.read_text()) | change
        path.write_text(json.dumps({key: value for key, value in wire.items() if value is not ...}))
    elif change is not None:
        path.write_text(change)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


@pytest.mark.parametrize(("targets", "message"), [
    ({}, "give either a number of jobs or a number of days"),
    ({"jobs": 1, "days": 1}, "either a number of jobs or"),
    ({"jobs": 0}, "jobs 0: must be from 1 to"),
    ({"days": -1}, "days -1: must be from"),
    ({"jobs": 1, "load": 0}, "load 0: must be from"),
    ({"jobs": 1, "processors": 0}, "processors 0: must be from 1 to"),
    ({"jobs": 1, "seed": -1}, "seed -1"),
    ({"jobs": 1, "correlation": 2}, "degree 2: must be from -1 to 1"),
    *(({"jobs": 1, "users": users}, f"users '{users}'") for users in ("0x", 0, "many", -3)),
])  # fmt: skip
def test_targets_that_make_no_sense(fitted, targets, message):
    """Each is reported with its value."""
    with pytest.raises(QuantityError, match=message):
        generate(fitted, **targets)


@pytest.mark.parametrize(("error", "words", "given", "options"), [
    (QuantityError, "model 'soup': not known; choose", ("soup", FEW), {}),
    (QuantityError, "arrivals 'soup': not known", ("downey", FEW), {"arrivals": "soup"}),
    (ModelFitError, "cycle", ("downey", FEW), {"cycle": "daily"}),
    (ModelFitError, "arrivals poisson: 2 jobs: two at", ("downey", Workload.of([5, 5], 1)), {}),
])  # fmt: skip
def test_what_cannot_be_fitted_is_said(error, words, given, options):
    """Names that are not known, short traces, and arrivals all in one second."""
    with pytest.raises(error, match=words):
        fit(*given, **options)


def test_targets_are_met(fitted):
    """Jobs, days and machine come out as asked for; a load only moves arrivals, or it is said."""
    found = generate(fitted, days=10)
    assert (128, ()) == (found.machine, found.notes)
    low, high = (generate(fitted, jobs=300, load=load).drawn for load in (0.3, 0.9))
    assert low.run_time.tolist() == high.run_time.tolist()
    assert low.submit[-1] == pytest.approx(3 * high.submit[-1], rel=0.01)
    short = fit("locality", poisson_workload(60, 300, 1, run_time=1, processors=1))
    assert "instead of 0.7" in generate(short, jobs=100, load=0.7).notes[-1]


def test_another_model_is_far_off():
    """KS separates Poisson jobs from harmonic sizes, whoever judges; the page has it all."""

    def backwards(task, seeds):
        return [task(seed) for seed in reversed(list(seeds))]

    model = published("feitelson97", 64)
    trace = poisson_workload(60, 300, 1, name="a <b> & c", wait=-1)
    found = judge(model, trace, seeds=2, each=backwards)
    assert [0, 1] == [one.seed for one in found.replications]
    assert found.ks("processors").mean > 0.3
    assert (None, "no waits recorded") == (found.ks("wait"), found.reason("wait_mean_s"))
    page = judgement_html(found, again="hpcrowd judge")
    titles = [one.title.strip() for one in FEATURES.values()]
    assert "a &lt;b&gt; &amp; c" in page
    assert [] == [words for words in titles if words not in unescape(page)]
    with pytest.raises(QuantityError, match="seeds 0: must be 1 or more"):
        judge(model, trace, seeds=0)


def test_a_spread_is_mean_and_deviation():
    """With n - 1; of one number there is no deviation, of none no spread, and no words."""
    found = Spread.of([1.0, 2.0, 6.0])
    assert (3, 1, 6, 3) == (found.mean, found.least, found.most, found.count)
    assert found.sd == pytest.approx(np.sqrt(7))
    assert (None, None) == (Spread.of([4.0]).sd, Spread.of([]))
    assert ["inside", "outside", ""] == [within(value, found) for value in (2.0, 7.0, None)]
    assert ("", ("", "")) == (within(1.0, None), format_spread(FEATURES["jobs"], None))
