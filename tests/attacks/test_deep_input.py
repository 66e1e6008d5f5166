"""Files that are nested too deeply, or have too long numbers: one line, whoever reads them."""

import re

import pytest
from hpcrowd.analysis.results import FILES
from hpcrowd.environment.traces.formats.swf import write_swf

STUDY = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n[axes]\nspeed = ["1x", "2x"]\n'


@pytest.fixture(params=("[" * 5_000, "9" * 5_000), ids=["deep", "long"])
def here(request, make_trace, tmp_path, monkeypatch):
    """A folder with a log, a study, and files of every kind that are too much."""
    job = {"submit": 0, "run": 60, "requested_processors": 1, "user": 1, "status": 1}
    write_swf(make_trace(job, header="; MaxProcs: 1"), tmp_path / "log.swf")
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "deep.toml").write_text(f"x = {request.param}")
    (tmp_path / "deep.json").write_text(request.param)
    for folder, names in (("run", FILES), ("sweep", ("study.json",))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(request.param)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    ["run deep.toml", "sweep deep.toml --out new", "grid deep.toml", "inspect deep.toml",
     "replay log.swf --users deep.toml", "replay log.swf --platform deep.toml",
     "replay log.swf --estimates deep.json", "replay deep.json", "generate deep.json -o new.swf",
     "judge deep.json log.swf", "stats run", "report run -o new.html", "compare run log.swf",
     "explain run --user 1", "inspect run", "sweep study.toml --out sweep --resume"],
)  # fmt: skip
def test_too_deep(here, call, command):
    """The line names the file, and nothing is written."""
    before = {path.name for path in here.iterdir()}
    code, out, err = call(*command.split())
    assert (2, "") == (code, out)
    last = err.strip().splitlines()[-1]
    assert re.match(r"hpcrowd: .*(deep\.|run|study\.json)", last)
    assert len(last) < 300
    assert before == {path.name for path in here.iterdir()}


def test_half_a_character(call, tmp_path):
    """An escape such as ``\\ud800`` in JSON, which no file can hold as text, is refused."""
    path = tmp_path / "log.json"
    job = r'{"id": "\ud800", "subtime": 0, "res": 1, "profile": "p"}'
    profiles = '{"p": {"type": "delay", "delay": 1}}'
    path.write_text(f'{{"nb_res": 1, "jobs": [{job}], "profiles": {profiles}}}')
    code, out, err = call("convert", path, tmp_path / "out.csv")
    assert (2, "", 1) == (code, out, err.count("\n"))
    assert "half a character" in err
    assert not (tmp_path / "out.csv").exists()
