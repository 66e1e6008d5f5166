"""A notebook shows figures and results by itself."""

import os
from pathlib import Path

import hpcrowd as hc
import pytest

from tests.scenarios.sweeps.sweep_cases import write_busy
from tests.support.places import ROOT

BEGIN = """
import hpcrowd as hc
run, other = (hc.replay("busy.swf", scheduler=name) for name in ("easy", "fcfs"))
"""

#: Cells that end with a picture.
PICTURES = (
    "hc.gantt(run)",
    "hc.pictures.overview(run)",
    "hc.pictures.use_over_time(run)",
    "hc.pictures.users_waits(run)",
    "hc.pictures.draw_runs([run, other])",
)

#: Cells that end with a table.
TABLES = ("run", "hc.read_trace('busy.swf')", "hc.compare(run, other)")

#: Largest table, bytes.
MOST = 20_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Jupyter are not ours
def test_notebook_shows_pictures_and_tables(tmp_path, monkeypatch):
    """Five figures are shown as pictures, without a magic command, and results as small tables."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    write_busy(tmp_path, 60)
    kernel = str(Path(nbclient.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), kernel]))
    cells = [nbformat.v4.new_code_cell(text) for text in (BEGIN, *PICTURES, *TABLES)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    here = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=here).execute()
    shown = [cell.outputs[-1].data for cell in notebook.cells[1:]]
    assert ["image/png" in one for one in shown] == [True] * 5 + [False] * 3
    tables = [one["text/html"] for one in shown[5:]]
    assert all(0 < len(table) < MOST for table in tables)


def test_results_are_short(tmp_path):
    """A forecast, a comparison and a sweep say in a line what they are, and have small tables."""
    log = write_busy(tmp_path, 60)
    found = hc.forecast(log, at="8h", days=1, futures=2, hindcasts=0)
    run = hc.replay(log)
    for one in (found, run, hc.compare(run, run), hc.read_trace(log)):
        assert len(repr(one)) < 200
        assert 0 < len(one._repr_html_()) < MOST
