"""Studies in TOML files: axes, their order, what is reported, and mistakes with their lines."""

import hashlib
import itertools
import json

import numpy as np
import pytest
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.commands.simulate import sweep as sweep_command
from hpcrowd.scenarios.sweeps.runs import planned
from hpcrowd.scenarios.sweeps.study import ResultConfig, TrimConfig, read_study, study_toml

from tests.scenarios.sweeps.sweep_cases import SCENARIO, STUDY, write_study

#: A change of the platform that axes may lead into.
CHANGE = '[scenario.platform]\n[[scenario.platform.changes]]\ndo = "down"\nat = 5\n'


def test_axes(tmp_path):
    """Every value meets every other, the last axis fastest; axes may lie deep and leave out."""
    axes = '[axes]\nspeed = ["1x", "2x"]\nseed = 2\nscheduler = ["easy", "fcfs"]\n'
    study = read_study(write_study(tmp_path, SCENARIO + axes))
    every = [*itertools.product(("1x", "2x"), (0, 1), ("easy", "fcfs"))]
    assert every == [tuple(point.values()) for point in study.points()]
    assert 8 == len(study)
    deep = "[axes]\nplatform.changes.0.processors = [1, 3]\n"
    study = read_study(write_study(tmp_path, SCENARIO + CHANGE + deep))
    found = [study.scenario_at(point).completed()["platform"] for point in study.points()]
    assert [1, 3] == [one["changes"][0]["processors"] for one in found]
    resize = '{changes = [{do = "resize", at = 9, processors = 4}]}'
    study = read_study(write_study(tmp_path, f'{SCENARIO}[axes]\nplatform = ["none", {resize}]\n'))
    assert [False, True] == ["platform" in study.settings(point) for point in study.points()]


def test_scenario_may_be_a_file_elsewhere(tmp_path):
    """Its files are looked for next to it; a mistake in it is reported with its line."""
    base, path = tmp_path / "base", tmp_path / "study.toml"
    base.mkdir()
    write_study(base, SCENARIO, name="scenario.toml")
    path.write_text('scenario = "base/scenario.toml"\n[axes]\nseed = 2\n')
    study = read_study(path)
    assert (base, "study", 2) == (study.folder, study.name, len(study))
    wrong = write_study(base, SCENARIO + 'speed = "fast"\n', name="scenario.toml")
    with pytest.raises(QuantityError, match=f"{wrong}, line 5: speed 'fast'"):
        read_study(path)
    wrong.unlink()
    with pytest.raises(QuantityError, match=r"scenario\.toml: cannot be read"):
        read_study(path)


def keys(folder, text=SCENARIO + STUDY):
    """Return the keys of the runs of a study."""
    return {run.key for run in planned(read_study(write_study(folder, text)))}


def test_keys_are_those_of_settings_and_inputs(tmp_path):
    """Runs keep their keys when axes grow or move; trimming and inputs make other ones."""
    before = keys(tmp_path)
    assert 20 == len(before)
    assert before < keys(tmp_path, SCENARIO + STUDY.replace('"0.7x"]', '"0.7x", "2x"]'))
    seeds_first = '[axes]\nseed = 5\nscheduler = ["fcfs", "easy"]\nspeed = ["1x"]\n'
    assert keys(tmp_path, SCENARIO + seeds_first) < before
    assert not keys(tmp_path, SCENARIO + STUDY + "[trim]\nwarm_up = 60\n") & before
    with (tmp_path / "busy.swf").open("a") as log:
        log.write("\n")
    assert not keys(tmp_path) & before


def test_completed_study_can_be_run_again(tmp_path, call):
    """``--show`` prints every setting; read again, it has the same runs with the same keys."""
    more = '[trim]\nwarm_up = "1h"\n[result]\nconfidence = 0.9\n'
    axes = '[axes]\nspeed = ["1x", "2x"]\nplatform.changes.0.processors = [1, 3]\nseed = [3, 8]\n'
    path = write_study(tmp_path, SCENARIO + CHANGE + axes + more)
    code, text, _ = call("sweep", path, "--show")
    assert 0 == code
    again = tmp_path / "again.toml"
    again.write_text(text)
    study, found = read_study(path), read_study(again)
    assert study_toml(study) == text
    assert [run.key for run in planned(study)] == [run.key for run in planned(found)]
    assert (study.trim, study.result) == (found.trim, found.result)
    for part in (TrimConfig, ResultConfig):
        assert all(f"# {name}: {one.description}"[:60] in text
                   for name, one in part.model_fields.items())  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (SCENARIO, 0, ["axes", "missing"]),
        (SCENARIO + STUDY + 'across = "sped"\n', 13, ["result.across 'sped'", "mean speed"]),
        (SCENARIO + "[axes]\n", 5, ["axes: none", "for example seed = 20"]),
        (SCENARIO + "[axes]\nspeed = []\n", 6, ["axes.speed: no values"]),
        (SCENARIO + "[axes]\nseed = 0\n", 6, ["axes.seed: no values"]),
        (SCENARIO + '[axes]\nspeed = "1x"\n', 6, ["axes.speed: '1x'", "must be a list"]),
        (SCENARIO + "[axes]\nseed = [1, 2, 1]\n", 6, ["axes.seed", "a value twice"]),
        (SCENARIO + '[axes]\nseed = 2\nsped = ["1x"]\n', 7, ["axes.sped", "no such setting"]),
        (SCENARIO + '[axes]\nspeed = ["1x",\n "fast"]\n', 6, ["axes.speed[1]", "'fast'", "2x"]),
        (SCENARIO + '[axes]\nseed = 2\nspeed.x = ["1x"]\n', 7, ["axes.speed.x", "speed"]),
        (SCENARIO + '[axes]\nseed = 2\n[trim]\nwarm_up = "1y"\n', 8, ["trim.warm_up", "'1y'"]),
        (SCENARIO + '[axes]\nseed = 2\n[result]\nmetrics = ["wait"]\n', 8, ["is not a metric"]),
        (SCENARIO + "[axes]\nseed = 2\n[result]\nconfidence = 1\n", 8, ["confidence 1", "less"]),
        (SCENARIO + "[axes]\nseed = 2\n[plot]\n", 7, ["plot: no such setting", "trim"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_and_line(tmp_path, text, line, words):
    """A mistake is reported in one line with file, line, setting, value and rule."""
    path = write_study(tmp_path, text)
    with pytest.raises(QuantityError) as caught:
        read_study(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: " if line else f"{path}: ")
    assert [] == [word for word in words if word not in message]


def test_progress_tells_the_time_left(monkeypatch, capsys):
    """Where there is no terminal a line comes now and then; runs kept from before need no time."""
    clock = [1000.0]
    monkeypatch.setattr(sweep_command.time, "monotonic", lambda: clock[0])
    with sweep_command._progress(100) as progress:
        for over in range(41, 71):  # 40 of 100 were done before
            progress(over, 100, over // 60)
            clock[0] += 2
    # The first line comes after 30 s: 15 runs took 30 s, so 44 more take 88 s.
    assert ["56 of 100 runs, 88 s left"] == capsys.readouterr().err.splitlines()


def test_command_sweeps_and_tells(tmp_path, call):
    """The command runs the study, prints means and differences, and says how far it is."""
    path, out = write_study(tmp_path), tmp_path / "out"
    code, text, err = call("sweep", path, "--out", out, "--executor", "inline")
    assert (0, "", True) == (code, err, "difference to scheduler = easy, paired" in text)
    code, text, _ = call("sweep", path, "--out", out, "--status", "--json")
    assert {"study": "study", "runs": 20, "done": 20, "failed": 0, "errors": []} == json.loads(text)
    code, text, _ = call("sweep", path, "--out", out, "--resume", "--executor", "inline", "--json")
    told = json.loads(text)
    assert (0, 20, 0) == (code, told["runs"], told["failed"])
    assert 2 * (4 + 2 + 2) == len(told["summary"])


def test_methods_section_says_what_was_run(tmp_path, call):
    """Versions, checksums, settings, design and statistics; nothing is run."""
    (tmp_path / "mine.py").write_text(
        "from hpcrowd.policies import Priority\n"
        "class Big(Priority):\n    def score(self, jobs):\n        return jobs.processors\n"
    )
    axes = '[axes]\nscheduler = ["easy", "mine.py:Big"]\nseed = 9\n[trim]\nwarm_up = "1d"\n'
    result = '[result]\nmetrics = ["wait_mean_s", "wait_mean_s_users_p90"]\neffects = "ratio"\n'
    path = write_study(tmp_path, f'{SCENARIO}{axes}{result}interval = "bootstrap"\n')
    code, text, _ = call("sweep", path, "--methods")
    assert 0 == code
    flat = " ".join(text.split())
    for name in ("busy.swf", "mine.py"):
        checksum = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert f"{name}, SHA-256 {checksum}" in flat
    for words in (
        f"numpy {np.__version__}",
        "We varied scheduler (easy, mine.py:Big). Every combination was run with 9",
        "with 9 seeds (0 to 8), 18 runs in all",
        "Settings: users fluid; all others have the defaults",
        "submitted in the first 24.0 h of submissions do not count;",
        "percentile bootstrap (seeds resampled 2,000 times)",
        "geometric means of the ratios to the run with the same seed",
        "90th percentile over users",
    ):
        assert words in flat
    assert {"busy.swf", "mine.py", "study.toml"} >= {one.name for one in tmp_path.glob("*.*")}
