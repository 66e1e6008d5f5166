"""Scripts that start processes: with and without ``if __name__ == "__main__":``."""

import os
import subprocess
import sys

import pytest

from tests.scenarios.sweeps.sweep_cases import write_study
from tests.support.places import ROOT

FORECASTS = """
import hpcrowd as hc
from hpcrowd.scenarios.engines import Processes

print("begins")
found = hc.forecast("busy.swf", at="2d", days=1, futures=20, hindcasts=0, workers=2)
print(len(found.futures), "futures")
engine = Processes(2)
done = hc.sweep(hc.read_study("study.toml"), "sweep", engine=engine)
engine.close()
print(done.over, "runs")
"""

OWN = """
from hpcrowd.scenarios.engines import each_in_processes

def twice(number):
    return 2 * number

{guard}
print(sorted(each_in_processes(twice, range(4), 2)))
"""


def run(folder, text):
    """Run a script in a folder, and return what it printed, and what it said beside that."""
    (folder / "script.py").write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.slow
def test_plain_script_forecasts_and_sweeps(tmp_path):
    """A script without a guard begins once, and its processes do the work."""
    write_study(tmp_path)
    printed, said = run(tmp_path, FORECASTS)
    assert (["begins", "20 futures", "20 runs"], []) == (printed, said)


def test_plain_script_runs_once(tmp_path):
    """Processes that need nothing of a script do not run it again."""
    text = OWN.format(guard="print('begins')").replace("(twice,", "(abs,")
    assert (["begins", "[(0, 0), (1, 1), (2, 2), (3, 3)]"], []) == run(tmp_path, text)


@pytest.mark.parametrize("guard", ['if __name__ == "__main__":', "if True:"])
def test_what_a_script_defines(tmp_path, guard):
    """Processes import a script for its own functions if it has a guard; else one line says why."""
    text = OWN.replace("\nprint", "\n    print").format(guard=guard)
    printed, said = run(tmp_path, text)
    if "name" in guard:
        assert ["[(0, 0), (1, 2), (2, 4), (3, 6)]"] == printed
    else:
        assert [] == printed
        assert said[-1].startswith(
            "hpcrowd.environment.errors.HpcrowdError: script.py: twice is defined in it, which 2 "
            "processes need and cannot import; move it into a module of its own, write `if __name__"
        )
        assert 1 == "\n".join(said).count("Traceback")
