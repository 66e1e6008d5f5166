"""What parts contribute to a run: totals, a table, metrics, columns, notes; a run is small."""

from dataclasses import fields
from typing import override

import numpy as np
import pytest
from hpcrowd.analysis.parts import PARTS, RunPart, RunParts
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import JobTable

#: Most public names of a run: fields, properties and methods.
MOST_NAMES = 20


class Moods(RunPart):
    """Moods of users; ``rows`` has one for each job."""

    name, key, file = "moods", "moods", "moods"
    meaning = {"number": "job number", "mood": "how its user felt"}  # noqa: RUF012

    @override
    def metrics(self, jobs, found):
        return {"wait_mean_s": found["jobs_in"] + self.account["good"]}

    @override
    def job_columns(self):
        return {"mood": dict(enumerate(self.rows)), "smiles": np.arange(len(self.rows))}

    @override
    def user_sums(self):
        return ["smiles"]

    @override
    def notes(self):
        return ["users have moods"]

    @override
    def columns(self, jobs):
        return {"number": jobs.number, "mood": self.rows}

    @override
    @classmethod
    def from_columns(cls, columns):
        return columns["mood"]


@pytest.fixture
def run(monkeypatch):
    """A run of two jobs with a part that no module of the library knows."""
    monkeypatch.setitem(PARTS, "moods", Moods)
    jobs = JobTable(2)
    jobs.number[:] = (1, 2)
    jobs.user[:] = 7
    return Run(jobs, 4, "moody", {}, parts=RunParts(Moods({"good": 1}, ["glad", "sad"])))


def test_a_part_contributes_without_being_known(run, tmp_path):
    """Its totals, metrics, columns and notes are those of the run, and its table is read back."""
    assert {"good": 1} == run.summary()["moods"]
    assert 3 == run.metrics["wait_mean_s"]
    assert ["glad", "sad"] == run.to_frame()["mood"].tolist()
    assert [1] == run.users()["smiles"].tolist()
    assert "users have moods" in run.notes
    write_results(run, tmp_path / "run", plots=False)
    again = read_results(tmp_path / "run")
    assert ({"good": 1}, ["glad", "sad"]) == (
        again.parts["moods"].account,
        again.parts["moods"].rows,
    )


def test_parts_that_a_run_does_not_have(run):
    """They are empty, and not among its parts; a name that is not known has a cure."""
    assert ["moods"] == list(run.parts)
    assert ({}, ()) == (run.parts["power"].account, run.parts["power"].rows)
    with pytest.raises(QuantityError, match="part of a run 'powr': not known; did you mean power"):
        run.parts["powr"]


def test_a_run_is_small():
    """What belongs to a part is in its part: a run has few public names."""
    names = {one.name for one in fields(Run)} | {name for name in vars(Run) if name[0] != "_"}
    assert len(names) <= MOST_NAMES
