"""What holds for every published study: declaration, output, page, folder, command, refusals."""

import csv
import inspect
import json
import re

import matplotlib.pyplot as plt
import pytest
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.scenarios.cli import app
from hpcrowd.scenarios.studies.options import FOLDER, options_of, study_entry, study_names
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.refresh import page_of, pictures_of_page, refresh, runs_of
from hpcrowd.scenarios.studies.refresh import stored_study as stored
from hpcrowd.scenarios.studies.render import BEGIN, END, Picture, refresh_page
from hpcrowd.scenarios.studies.running import run_study
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from tests.scenarios.studies.study_cases import CASES, KTH_FILE, log_of_one_job, shown

STUDIES = study_names()

#: Studies that take hours: their runs are stored next to their pages.
STORED = [name for name in STUDIES if study_entry(name).study.stored_digits is not None]

#: Studies whose work several processes share.
SHARED = [n for n in STUDIES if "workers" in inspect.signature(study_entry(n).run).parameters]

#: Studies of papers that count no jobs, or whose figures are of generated work.
UNCOUNTED = {"zakay2015", "minh2012-arrivals", "minh2012-correlation", "slurm"}

#: Parts that a study makes and its page does not show.
NOT_SHOWN = {
    "madon2024": {"summary", "required"}, "minh2012-features": {"required"},
    "minh2012-correlation": {"required"}, "minh2012-predictor": {"summary"},
    "zakay2015": {"summary"},
    "slurm": {"largest", "earliest"},
}  # fmt: skip

#: Parts of a page that need additional runs.
MORE = {
    "madon2024": {"spread of ties", "spread of seconds", "other readings"},
    "slurm": {"mechanisms", "forecasts"}, "zakay2015": {"readings", "effects"},
}  # fmt: skip


#: Published tables: rows, filled cells, and the sum of all numbers, so that no digit changes.
PUBLISHED = {
    "madon2024_figure5c": (6, 48, 376_710), "madon2024_table1": (19, 152, 28_150.6),
    "madon2024_table2": (12, 96, 2_529.2), "madon2024_text": (6, 36, 927),
    "minh2012_table7_1": (11, 44, 0.025), "minh2012_bag_fits": (6, 96, 34_685.793),
    "minh2012_chapter3": (21, 189, 12_060.498), "minh2012_table3_1": (16, 96, 2_539_434),
    "minh2012_arrivals": (22, 176, 1_055.03), "minh2012_comprehensive": (5, 40, 32.919),
    "minh2012_tables8": (4, 48, 298_834.5), "song2005_table1": (6, 24, 496_632),
    "song2005_table2": (5, 19, 7_300.99), "song2005_table3": (72, 432, 5_940.1),
    "song2005_tables4_5": (6, 30, 2.27), "zakay2015_table1": (4, 36, 363_139),
}  # fmt: skip


@pytest.fixture(params=STUDIES)
def ran(request, ran_of):
    """Return each study at a small size."""
    return ran_of(request.param)


@pytest.fixture
def study(ran):
    """Return each study at a small size, without its steps."""
    return ran.study


def test_every_study_has_its_case():
    """A new study is run at a small size, too."""
    assert STUDIES == sorted(CASES)


@pytest.mark.parametrize("name", STUDIES)
def test_what_a_study_declares(name):
    """Its name; rules that differ and say where they stand; its input first."""
    run, study = study_entry(name)
    assert name == study.name
    assert options_of(run)[0].name == ("records" if name == "slurm" else "traces")
    for words in ({rule.name for rule in study.rules}, {rule.what for rule in study.rules}):
        assert len(study.rules) == len(words)
    assert all(rule.section for rule in study.rules)


def test_studies_are_listed():
    """The help has the line of each; a study that is not there is named with those that are."""
    listed = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"})
    assert [] == [name for name in STUDIES if study_entry(name).study.about not in listed.output]
    with pytest.raises(QuantityError, match="study 'madon1999': not known; choose madon2024, "):
        study_entry("madon1999")


def test_every_published_table_has_a_source_and_is_whole():
    """A study says where each of its tables comes from; every digit is as it was copied."""
    declared: dict[str, str] = {}
    for name in STUDIES:
        declared.update(study_entry(name).study.published)
    for source in declared.values():
        assert re.search(r"doi:|https?://|\d{4}", source)
        assert re.search(", Table|Fig|text", source)
    found = {}
    for name in (path.stem for path in FOLDER.glob("*/published/*.csv")):
        cells = [cell for row in published_rows(name) for cell in row.values() if cell]
        numbers = [float(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?", cell)]
        found[name] = len(published_rows(name)), len(cells), pytest.approx(sum(numbers))
    assert (PUBLISHED, set(PUBLISHED)) == (found, set(declared))
    with pytest.raises(QuantityError, match="'madon1999': not known; choose madon2024_figure5c"):
        published_rows("madon1999")


def test_data_are_plain_and_whole(study):
    """JSON without NaN has the name, statements, what is required, and whether it is reached."""
    data = json.loads(json.dumps(study.to_json(), allow_nan=False))
    assert study.name == data["study"]
    assert study.reached == (not study.failures) == data["reached"]
    assert len(study.claims) == len(data["statements"])
    assert len(study.requirements) == len(data["required"])
    assert all(claim.what and claim.section and claim.text for claim in study.claims)
    assert study.versions() or study.name in UNCOUNTED
    if study.listed:
        assert {*study.listed} >= {*study.absent}
        assert {*study.listed} - {*study.absent} == {*getattr(study, "weeks", study.traces)}


def test_a_terminal_shows_everything(study):
    """Every table, sentence, listed statement and missed figure, within the width."""
    text = shown(study)
    flat = " ".join(text.split())
    titles = [table.title for table in study.marked_tables() if table.terminal and table.rows]
    wanted = [" ".join(one.split()) for one in (*titles, *study.sentences())]
    assert [] == [one for one in wanted if one.replace("`", "").replace("**", "") not in flat]
    assert len(study.failures) == text.count("not reached: ")
    assert len(study.claims) == len(re.findall(r": (?:holds|does not hold|open): ", text))
    long = [line for line in text.splitlines() if len(line) > 100]
    assert [] == [line for line in long if "─" in line or "  " in line.strip()]


def test_parts_have_their_place_on_the_page(study):
    """Every generated part is at one place, filled, and a table with cells in each row."""
    page = page_of(study.name).read_text()
    parts = study.page_parts()
    marks = re.findall(BEGIN.format("(.*)"), page)
    assert len(marks) == len(set(marks))
    assert set(parts) - NOT_SHOWN.get(study.name, set()) == set(marks) - MORE.get(study.name, set())
    for mark in marks:
        inside = page.partition(BEGIN.format(mark))[2].partition(END.format(mark))[0]
        assert inside.strip()
    for text in parts.values():
        for block in re.split(r"\n\n", text):
            cells = {line.count("|") for line in block.splitlines() if line.startswith("|")}
            assert len(cells) <= 1


def test_steps_are_told_to_the_last(ran):
    """None is beyond the last one, and the last one is the last of all."""
    _, done, total = ran.steps[-1]
    assert (CASES[ran.study.name].steps,) * 2 == (done, total)
    assert len({done for _, done, _ in ran.steps}) > 2
    assert [] == [step for step in ran.steps if not 0 <= step[1] <= step[2]]
    assert ran.study.name == "slurm" or 0 == ran.steps[0][1]


@pytest.mark.parametrize(
    ("name", "picture"), [(name, one) for name in STUDIES for one in CASES[name].pictures]
)
def test_pictures_are_drawn(ran_of, name, picture):
    """A picture has words, and panels with something in them; pyplot is left alone."""
    before = plt.get_fignums()
    (one,) = (one for one in ran_of(name).study.pictures() if one.name == picture)
    figure = one.draw()
    assert isinstance(figure, Figure)
    assert figure.axes
    assert [] == [axes for axes in figure.axes if not (axes.has_data() or axes.texts)]
    parts = (figure, *figure.subfigs)
    words = {text.get_text() for part in parts for text in part.texts}
    words |= {part.get_supxlabel() + part.get_supylabel() for part in parts}
    words |= {axes.get_xlabel() for axes in figure.axes}
    assert words - {""}
    assert one.words
    assert before == plt.get_fignums()


def test_the_folder_is_whole(study, tmp_path, monkeypatch):
    """Data, table, page, provenance and pictures, which here are empty; it may be replaced."""
    monkeypatch.setattr(Picture, "write", lambda self, path: path.write_bytes(b""))
    monkeypatch.setattr("hpcrowd.scenarios.studies.render._reduce_colours", lambda *_: None)
    folder, case = tmp_path / "study", CASES[study.name]
    study.write(folder)
    study.write(folder)
    files = {f"{study.name}.json", f"{study.name}.csv", "report.html", "provenance.json"}
    pictures = {f"{name}.png" for name in case.pictures}
    assert files | pictures == {path.name for path in folder.iterdir()}
    assert study.to_json() == json.loads((folder / f"{study.name}.json").read_text())
    assert study.name == json.loads((folder / "provenance.json").read_text())["study"]
    page = (folder / "report.html").read_text()
    for mark in ("tr", "td", "th"):
        assert page.count(f"</{mark}>") == page.count(f"<{mark}>") + page.count(f"<{mark} ")
    assert len(pictures) == page.count('src="data:image/png;base64,')
    with (folder / f"{study.name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    heading, values = study.rows()
    assert [*heading] == rows[0]
    assert case.rows == len(rows) - 1 == len([*values])
    assert {len(heading)} == {len(row) for row in rows}


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_prints(study, capsys, as_json):
    """One object, or the tables; nothing on standard error; the answer says what was reached."""
    assert study.reached == run_study(lambda told: study, out=None, as_json=as_json)
    printed = capsys.readouterr()
    assert "" == printed.err
    if as_json:
        assert study.to_json() == json.loads(printed.out)
    else:
        assert study.sentences()[-1].split()[0] in printed.out


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_command_line(input_of, tmp_path, call, name):
    """The command writes the folder with its pictures, and says what is reached by its code."""
    source = ["--records" if name == "slurm" else "--traces", input_of(name)]
    source = [] if name == "minh2012-arrivals" else source
    words = [*source, *CASES[name].words.split(), "--out", tmp_path / "out", "--json"]
    code, printed, _ = call("reproduce", name, *words)
    data = json.loads(printed)
    assert name == data["study"]
    failed = [one for one in data["required"] if not one["holds"]]
    assert (0 if data["reached"] else 1) == code
    assert bool(failed) == (not data["reached"])
    for one in CASES[name].pictures:
        assert b"\x89PNG" == (tmp_path / "out" / f"{one}.png").read_bytes()[:4]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_processes_do_not_change_the_results(input_of, ran_of, name):
    """Two processes give what one gives, to the bit."""
    folder = None if name == "minh2012-arrivals" else input_of(name)
    again = study_entry(name).run(folder, **{**CASES[name].arguments, "workers": 2})
    assert ran_of(name).study.to_json() == again.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["madon2024", "zakay2015"])
def test_a_log_of_one_job(make_trace, tmp_path, name):
    """A log with nearly nothing in it still gives data, tables and pictures."""
    write_swf(log_of_one_job(make_trace), tmp_path / KTH_FILE)
    study = study_entry(name).run(tmp_path)
    assert json.dumps(study.to_json(), allow_nan=False)
    assert any("| - |" in text for text in study.page_parts().values())
    assert {True} == {bool(one.draw().axes) for one in study.pictures()}


@pytest.mark.parametrize("name", STUDIES)
def test_without_its_input_a_study_says_what_to_fetch(tmp_path, name):
    """One line names the folder, and a file with its page or what has to be there."""
    arguments = {"log": "Thunder"} if name == "minh2012-arrivals" else {}
    with pytest.raises(TraceError) as caught:
        study_entry(name).run(tmp_path, **arguments)
    message = str(caught.value)
    assert message.startswith(str(tmp_path))
    assert "no recorded run" in message if name == "slurm" else re.search("fetch .*https:", message)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("minh2012-arrivals", {"workers": 0}, "workers 0: at least 1"),
        ("minh2012-correlation", {"workers": 0}, "workers 0: at least 1"),
        ("minh2012-models", {"seeds": 1}, "seeds 1: at least 2"),
        ("minh2012-models", {"workers": 0}, "workers 0: at least 1"),
        ("minh2012-predictor", {"budget_s": 0}, "budget 0 s, seeds 4: both must be more than 0"),
        ("slurm", {"phases": 0}, "must be from"),
        ("slurm", {"mechanisms": -1}, "must be from"),
        ("song2005", {"seeds": 0}, "seeds 0: must be 1 or more"),
        ("zakay2015", {"seeds": 0}, "seeds 0: at least 1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(input_of, name, arguments, words):
    """Before anything is run."""
    with pytest.raises(QuantityError, match=words):
        study_entry(name).run(input_of(name), **arguments)


@pytest.mark.parametrize("name", STORED)
def test_data_are_read_back(ran_of, name):
    """What is written as plain data gives the same study; rounded data keep their digits."""
    study = ran_of(name).study
    back = type(study).of_stored(json.loads(json.dumps(study.to_json(), allow_nan=False)))
    assert study.stored() == back.stored()
    assert study.page_parts() == back.page_parts()
    rounded = study.stored(4)
    assert rounded != study.stored()
    assert rounded == type(study).of_stored(rounded).stored(4)


@pytest.mark.parametrize("name", STORED)
def test_the_page_is_made_from_stored_runs(name, tmp_path, monkeypatch):
    """Runs of a folder of results are stored, rounded; the page and its pictures come out again."""
    dot = Image.new("RGB", (1, 1))
    monkeypatch.setattr(Picture, "write", lambda self, path: dot.save(path, "PNG"))
    study, page = stored(name), page_of(name).read_text()
    assert study.reached
    assert page == refresh_page(page, study.page_parts())
    pictures = {path.name for path in pictures_of_page(name).iterdir()}
    assert {f"{one.name}.png" for one in study.pictures()} == pictures
    assert [] == [one for one in pictures if f"{name}/{one}" not in page]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / f"{name}.json").write_text(json.dumps(study.to_json()))
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    copy = page_of(name, tmp_path / "docs")
    copy.write_text(refresh_page(page, dict.fromkeys(study.page_parts(), "old")))
    refresh(name, runs=tmp_path / "results", docs=tmp_path / "docs")
    assert runs_of(name).read_text() == runs_of(name, tmp_path / "docs").read_text()
    assert page == copy.read_text()
    new = pictures_of_page(name, tmp_path / "docs")
    assert pictures == {path.name for path in new.iterdir()}
