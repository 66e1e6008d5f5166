"""The command ``hpcrowd validate``, and the page of the documentation about it."""

import csv
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hpcrowd.analysis.validation.futures import MEASURES
from hpcrowd.analysis.validation.models import BASELINES, ELSEWHERE, POOLED
from hpcrowd.analysis.validation.report import COLUMNS, text
from hpcrowd.analysis.validation.validation import INSIDE, RANKED, protocol, validate
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.commands.models.validate import models_of
from hpcrowd.scenarios.studies import validation
from hpcrowd.scenarios.studies.render import BEGIN

HEADER = "; UnixStartTime: 978307200\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 8\n"


def swf(wait=7, users=4, jobs=25):
    """A trace of users who think for an hour and more after each job."""
    random = np.random.default_rng(5)
    rows = []
    for user in range(users):
        at = 1000 * user
        for _ in range(jobs):
            run = int(random.lognormal(7, 1)) + 1
            rows.append((at, run, user))
            at += max(wait, 0) + run + 3700 + run // 2 + int(random.exponential(9000))
    lines = [
        f"{number} {at} {wait} {run} 1 -1 -1 1 {run} -1 1 {user} 1 1 1 1 -1 -1"
        for number, (at, run, user) in enumerate(sorted(rows), start=1)
    ]
    return HEADER + "\n".join(lines) + "\n"


@pytest.fixture
def trace(tmp_path):
    """A small trace on disk."""
    path = tmp_path / "small.swf"
    path.write_text(swf())
    return path


def test_judged_by_the_month(call, trace, tmp_path):
    """--month prints the weeks before and models; --out leaves all of it, always the same."""
    trace.write_text(swf(jobs=150))
    words = (trace, "--month", "--users", "rigid,lublin", "--days", "7", "--origins", "0.5")
    for name in ("a", "b"):
        more = ("--seeds", "4", "--json", "--out", tmp_path / name)
        code, out, err = call("validate", *words, *more)
        assert (0, f"Results are in {tmp_path / name}/\n") == (code, err)
    wire = json.loads(out)
    assert {"days": 7, "draws": 4, "origins": [0.5]}.items() <= wire["settings"].items()
    assert ["weeks before", "rigid", "lublin"] == list(wire["sources"])
    rigid = wire["sources"]["rigid"]
    assert 0.3 < rigid["jobs"]["ratio_median"] < 3
    assert 0 <= rigid["load_by_day"]["coverage_90"] <= 1
    assert wire["sources"]["weeks before"]["jobs"]["coverage_90"] is None
    assert ["record", *wire["sources"]] == [row["a day"] for row in wire["account"]]
    assert {"jobs", "processor_hours"} == set(wire["chance"])
    names = ["month.csv", "month.json", "provenance.json"]
    assert names == sorted(path.name for path in (tmp_path / "a").iterdir())
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    code, out, _ = call("validate", *words, "--seeds", "2")
    assert 0 == code
    for title in ("CRPS", "Covered by", "Mean of the draws", "Account", "A model that knew"):
        assert f"\n{title}" in out
    code, out, _ = call("validate", *words[:-1], "months", "--seeds", "2", "--json")
    assert (0, 7) == (code, json.loads(out)["settings"]["apart"])
    code, _, err = call("validate", trace, "--origins", "months")
    assert (2, True) == (code, "with --month also months" in err)
    for more, told in (("--elsewhere", "not with --month"), ("--pauses=recorded", "--month")):
        code, _, err = call("validate", *words, more)
        assert (2, True) == (code, told in err)


def test_json_and_a_folder(call, trace, tmp_path):
    """--json prints every measure; --out leaves data, table, picture and page, always the same."""
    words = (trace, "--users", "adjusted,think-time", "--json", "--seeds", "2")
    for name in ("a", "b"):
        code, out, err = call("validate", *words, "--out", tmp_path / name)
        assert (0, f"Results are in {tmp_path / name}/\n") == (code, err)
    wire, folder = json.loads(out), tmp_path / "a"
    measures = {model["name"]: model["measures"] for model in wire["models"]}
    assert {"adjusted", "think-time", *BASELINES} == set(measures)
    assert set(RANKED) == set(measures["adjusted"])
    assert {*MEASURES, "next_session"} - set(INSIDE) == set(measures["think-time"])
    assert [1, 2, 3, 4] == sorted(one["next_session"]["rank"] for one in measures.values())
    before = [one["jobs_first"] for one in wire["origins"]]
    assert sorted(before) == before
    assert all(one["jobs_first"] + one["jobs_second"] <= 100 for one in wire["origins"])
    assert [0.4, 0.5, 0.6, 0.7, 0.8] == wire["settings"]["origins"]
    settings = {"days": 28, "scheduler": "easy", "pauses": "drawn", "seeds": 2}
    assert settings.items() <= wire["settings"].items()
    assert not any(model["circular"] for model in wire["models"])
    assert {"hindsight", "days before"} == set(wire["floors"])
    names = ["provenance.json", "report.html",
             *(f"validation.{suffix}" for suffix in ("csv", "json", "png"))]  # fmt: skip
    assert names == sorted(path.name for path in folder.iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert json.loads((folder / "validation.json").read_text()) == {
        key: value for key, value in wire.items() if key not in ("trace", "waits_note")
    }
    rows = list(csv.DictReader((folder / "validation.csv").read_text().splitlines()))
    assert COLUMNS == tuple(rows[0])
    for row in (row for row in rows if row["model"] == "adjusted"):
        value = measures["adjusted"][row["measure"]][row["statistic"]]["value"]
        assert pytest.approx(value, rel=1e-5) == float(row["value"])


@pytest.mark.parametrize(
    ("wait", "options", "begins"),
    [
        (7, ("adjusted,fluid", "--origins", "0.5,0.4"), ("adjusted", "fluid", POOLED)),
        (7, ("adjusted,fluid", "--pauses", "recorded"), ("Circular",)),
        (7, ("adjusted,office.toml",), ("adjusted", "office")),
        (-1, ("adjusted", "--origins", "0.5"), ("the log has no waits: those of a simulation",)),
    ],
    ids=["two origins", "recorded pauses", "file of a population", "no waits"],
)
def test_tables_say_what_was_done(call, trace, monkeypatch, wait, options, begins):
    """A row for each model, a preset or a file; what was circular or simulated is said."""
    monkeypatch.chdir(trace.parent)
    trace.write_text(swf(wait))
    Path("office.toml").write_text('[[users]]\nbehaviour = "adjusted"\nwindow = "fitted"\n')
    code, out, _ = call("validate", trace, "--users", *options)
    assert 0 == code
    lines = [line.strip() for line in out.splitlines()]
    for name in (*begins, "(hindsight)", "(days before)"):
        assert [line for line in lines if line.startswith(name)], name
    circular = [line for line in lines if line.startswith("Circular")]
    assert [True] * ("recorded" in options) == ["adjusted" in one for one in circular]
    assert not any("fluid" in line for line in circular)


def test_several_logs_are_compared(call, trace, tmp_path):
    """One table over all logs, with a model fitted to the others, and a folder for each."""
    other = tmp_path / "other.swf"
    other.write_text(swf(users=6, jobs=20))
    arguments = (trace, other, "--users", "adjusted,learned", "--origins", "0.5", "--elsewhere")
    code, out, _ = call("validate", *arguments, "--out", tmp_path / "both")
    assert 0 == code
    assert "All 2 logs" in out
    assert {"small.swf", "other.swf", "across.json", "across.csv", "provenance.json"} == {
        path.name for path in (tmp_path / "both").iterdir()
    }
    wire = json.loads((tmp_path / "both" / "across.json").read_text())
    names = {"adjusted", "learned", ELSEWHERE, *BASELINES}
    assert names == {model["name"] for model in wire["models"]}
    ranks = [model["mean_rank"] for model in wire["models"]]
    assert sorted(ranks) == ranks
    rows = list(csv.DictReader((tmp_path / "both" / "across.csv").read_text().splitlines()))
    assert [model["name"] for model in wire["models"]] == [row["model"] for row in rows]


def test_every_part_of_the_page_is_made(trace, tmp_path, root, monkeypatch):
    """Every generated part has its place on the page, and so has the picture; logs are kept."""
    trace.rename(tmp_path / "KTH-SP2-1996-2.1-cln.swf")
    (tmp_path / "NASA-iPSC-1993-3.1-cln.swf").write_text(swf(users=6, jobs=20))
    rules = replace(protocol(), origins=(0.5,), design=("KTH",), check=("NASA",))
    monkeypatch.setattr(validation, "protocol", lambda: rules)
    monkeypatch.setattr(validation, "validate", partial(validate, rules=rules))
    kept = tmp_path / "kept"
    parts, pictures = validation.page_contents(tmp_path, kept)
    page = (root / "docs" / "studies" / "validation.md").read_text()
    assert set(parts) == set(re.findall(BEGIN.format("(.*)"), page))
    assert all(f"pictures/validation/{one.name}.png" in page for one in pictures)
    assert [True] == [bool(one.draw().axes) for one in pictures]
    assert {"KTH.pkl", "NASA.pkl"} == {path.name for path in kept.iterdir()}
    monkeypatch.delattr(validation, "validate")
    assert parts == validation.page_contents(tmp_path, kept)[0]


@pytest.mark.slow
@pytest.mark.traces
def test_page_shows_the_computed_scores(kth, root):
    """The table of KTH in the documentation holds what the code computes, digit by digit."""
    page = (root / "docs" / "studies" / "validation.md").read_text()
    part = page.partition(BEGIN.format("design"))[2].partition("**KTH**")[2].partition("**")[0]
    count = len(RANKED)
    shown = {
        cells[0]: [cell.replace("=", "") for cell in cells[1 : count + 1]]
        for line in part.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) > count
    }
    jobs = jobs_from_trace(kth).jobs
    models = models_of(["learned", "think-time"])
    found = validate(jobs, models, Clock.of(kth.header), processors=kth.processors)
    for name, scores in found.scores.items():
        computed = [text(scores.get(m), m, 2).replace("=", "") for m in RANKED]
        assert shown[name] == computed
