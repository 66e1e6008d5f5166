"""What studies share: output, marks of other versions, finding logs, options, refreshed pages."""

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.scenarios.studies import render
from hpcrowd.scenarios.studies.options import Option, arguments_of, options_of, parse_loads
from hpcrowd.scenarios.studies.refresh import MEASURED, page_of, refresh
from hpcrowd.scenarios.studies.refresh import command as refresh_command
from hpcrowd.scenarios.studies.render import Version, marked, version_lines
from hpcrowd.scenarios.studies.running import LOGS, find_logs, log_name, swap_ties
from hpcrowd.scenarios.studies.study import PublishedStudy, Requirement, Rule, as_data
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

from tests.scenarios.studies.study_cases import shown

MET = Requirement("KTH", "mean wait", "5 s", "5 s", True)
MISSED = Requirement("KTH", "jobs <moved>", "3", "none", False)

SP2 = Version("SDSC", 54_044, 67_667)
SAME = Version("KTH", 28_475, 28_475)
NEAR = Version("DS", 66_744, 66_743)

LINE = "SDSC: 54,044 jobs, 67,667 in section 5.1: another version of the log"


@dataclass
class Small(PublishedStudy):
    """A study of three logs and two requirements."""

    name = "small"
    about = "A study."
    title = "A study, reproduced"
    source = "A paper"
    counted_in = "section 5.1"

    traces: dict[str, Any] = field(default_factory=dict)
    requirements = (MET, MISSED)

    def tables(self):
        """Return a table by log, and one of a log."""
        rows = [["SDSC", "12"], ["KTH", "13"], ["DS", "14"]]
        return [
            render.Table("Waits", ("log", "wait"), rows, part="waits"),
            render.Table("Makespans, SDSC", ("users", "days"), [["rigid", "5"]], part="spans"),
        ]

    def summary(self):
        """Return what was reached."""
        return [self.score]

    def pictures(self):
        """Return none."""
        return []

    def data(self):
        """Return none."""
        return {}

    def rows(self):
        """Return none."""
        return [], []

    def versions(self):
        """Return the numbers of jobs."""
        return [SP2, SAME, NEAR]


@pytest.mark.parametrize(("holds", "expected"), [(np.True_, True), (False, False), (None, None)])
def test_claims_are_plain(holds, expected):
    """What a comparison of arrays gives becomes a bool of Python; a setting may have a name."""
    rule = Rule("name", "VII", "what", lambda ratio: ({"ratio": ratio}, "0.50", holds))
    claim = rule.claim("KTH", 0.5)
    assert expected is claim.holds
    assert ("name", "VII", "what", "KTH", "0.50") == (
        claim.name, claim.section, claim.what, claim.setting, claim.text,
    )  # fmt: skip
    (named,), (unnamed,) = as_data([MET], "log"), as_data([replace(MET, setting="")], "log")
    assert ["log", *unnamed] == list(named)


def test_no_stands_out_on_a_page():
    """Words are to the left, text is escaped, and a no is marked, without its Markdown."""
    study = Small()
    required = render.required_table([MET, MISSED], "log")
    rows = [*required.rows, ["CEA", "`a`", "", "", "**no**: 4"]]
    study.tables = lambda: [render.Table("A & B", required.heading, rows, 2)]
    study.requirements = ()
    text = render.study_page(study, [])
    assert "<h2>A &amp; B</h2>" in text
    assert '<th scope="col">what</th><th scope="col" class="number">ours</th>' in text
    assert '<td>jobs &lt;moved&gt;</td><td class="number">3</td>' in text
    assert '<td class="number">yes</td>' in text
    assert 1 == text.count("<strong>no</strong>")
    assert '<td>a</td><td class="number"></td>' in text
    assert "<strong>no: 4</strong>" in text


@pytest.mark.parametrize(("once", "times"), [(True, 1), (False, 2)])
def test_first_column_is_said_once_on_a_terminal(once, times):
    """A log in two rows after each other is named in the first of them only, when asked."""
    console = Console(file=io.StringIO(), width=100)
    rows = render.required_table([MET, MISSED], "log").rows
    console.print(
        render.terminal_table(render.Table("Required", ("log", *"abcd"), rows, 5, once=once))
    )
    assert times == console.file.getvalue().count("KTH")


def test_pictures_are_described_by_who_drew_them(tmp_path):
    """The docstring of the function is heading and alternative text; dots per inch are kept."""

    def draw():
        """Waits & queues."""
        return Figure(figsize=(2, 1))

    picture = render.Picture.of("waits", draw, dpi=50)
    picture.write(tmp_path / "waits.png")
    study, png = Small(), (tmp_path / "waits.png").read_bytes()
    page = render.study_page(study, [(picture.words, png)])
    assert "<h1>A study, reproduced</h1>\n<p>A paper.</p>\n<p>1 of 2.</p>" in page
    words = "Waits &amp; queues."
    assert f'alt="{words}" src="data:image/png;base64,' in page
    assert f"<figcaption>{words}</figcaption>" in page
    with Image.open(tmp_path / "waits.png") as image:
        assert (100, 50) == image.size


def test_figures_on_another_version_are_marked_everywhere():
    """Terminal, HTML page, generated Markdown and data all say it; without one nothing changes."""
    assert [
        f"{LINE}, on which figures of SDSC† rest",
        "DS: 66,744 jobs, 66,743 in section 5.1: nearly the same version of the log",
    ] == version_lines([SP2, SAME, NEAR], "section 5.1")
    study = Small()
    for text in (shown(study), render.study_page(study, [])):
        assert LINE in " ".join(text.split())
        assert "Makespans, SDSC†" in " ".join(text.split())
        assert "KTH†" not in text
        assert "DS†" not in text
    parts = study.page_parts()
    assert LINE in parts["summary"]
    assert "| SDSC† | 12 |" in parts["waits"]
    assert ["SDSC", "DS"] == [one["log"] for one in study.to_json()["other_versions"]]
    table = study.tables()[0]
    assert table is marked(table, [SAME, NEAR])


def test_logs_are_found_by_their_names(tmp_path):
    """Plain or gzipped, any version that the star stands for, in the order asked for."""
    for name in ("LANL-CM5-1994-4.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln.swf", "other.swf"):
        (tmp_path / name).touch()
    found = {name: path.name for name, path in find_logs(tmp_path, LOGS).items()}
    assert {"KTH": "KTH-SP2-1996-2.1-cln.swf", "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz"} == found
    assert "LANL-CM5-1994-4.1-cln" == log_name(Path(found["LANL-CM5"]))
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").touch()
    with pytest.raises(TraceError, match="several traces of KTH; keep only one there"):
        find_logs(tmp_path, LOGS)


def test_what_is_not_found_is_one_line(tmp_path):
    """The message names what was looked for, or the log that is needed, and where to fetch it."""
    for needed, begins, place in (
        ((), ": no trace of KTH, SDSC-SP2, ", "fetch one, such as KTH-SP2-1996-2.1-cln.swf.gz"),
        (["HPC2N"], "/HPC2N-2002-2.2-cln.swf[.gz]: not found; fetch it from https://", "l_hpc2n"),
    ):
        with pytest.raises(TraceError) as caught:
            find_logs(tmp_path, LOGS, needed)
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}{begins}")
        assert place in message
        assert "\n" not in message


def test_ties_change_places_and_nothing_else(make_trace):
    """Job numbers move only among the jobs of one second."""
    trace = make_trace(*({"submit": second, "run": 5} for second in (0, 7, 7, 7, 9, 9)))
    seen = {tuple(swap_ties(trace, seed)["number"].tolist()) for seed in range(100)}
    assert 6 * 2 == len(seen)
    assert {(1,)} == {numbers[:1] for numbers in seen}
    assert {(2, 3, 4)} == {tuple(sorted(numbers[1:4])) for numbers in seen}
    assert [1, 2, 3, 4, 5, 6] == trace["number"].tolist()


@dataclass(frozen=True)
class Size:
    """A plan with an option, and a field for Python only."""

    jobs: Annotated[int, Option("Jobs.", least=1)] = 5
    degrees: tuple[float, ...] = (0.0,)


def run(
    place: Annotated[str, Option("Where.")],
    size: Size | None = None,
    *,
    loads: Annotated[
        tuple[float, ...],
        Option("Loads.", name="at", parse=lambda text: (float(text),), shown=lambda at: f"{at[0]}"),
    ] = (0.5,),
    only: str = "all",
) -> None:
    """A study's function."""


def test_options_are_those_of_parameters_and_plans():
    """Annotated parameters and fields are options; texts are parsed; plans are made."""
    options = options_of(run)
    assert ["place", "jobs", "at"] == [one.name for one in options]
    assert [5, "0.5"] == [one.declared().default for one in options[1:]]
    found = arguments_of(options, {"place": "here", "jobs": 7, "at": "0.9"})
    assert {"place": "here", "size": Size(7), "loads": (0.9,)} == found


def test_loads_are_numbers_between_commas():
    """Anything else is refused with an example."""
    assert (0.7, 1.0) == parse_loads("0.7,1")
    with pytest.raises(QuantityError, match=r"loads '0\.7;0\.9': not numbers; write for example"):
        parse_loads("0.7;0.9")


@pytest.mark.parametrize("name", ["zakay2015", *MEASURED])
def test_page_needs_traces_that_are_there(tmp_path, capsys, name):
    """Without a folder of traces, or without a trace in it, one line says so; exit code 2."""
    words = {
        "zakay2015": "no trace of",
        "validation": "cln.swf[.gz]: not found; fetch it from",
    }.get(name, "")
    for traces, told in ((None, f"{name}: its page is made from traces; give"), (tmp_path, words)):
        with pytest.raises(typer.Exit) as ended:
            refresh_command(name, traces=traces)
        error = capsys.readouterr().err
        assert (2, 1) == (ended.value.exit_code, error.count("\n"))
        assert told in error


def test_part_that_nobody_makes_is_an_error(tmp_path):
    """A page that asks for a generated part that its study does not have is left as it is."""
    name = "minh2012-correlation"
    (tmp_path / "studies").mkdir()
    stored = page_of(name).with_suffix(".json")
    (tmp_path / "studies" / stored.name).write_bytes(stored.read_bytes())
    page = page_of(name, tmp_path)
    page.write_text("<!-- generated: weather -->\n\n<!-- end of weather -->\n")
    before = page.read_text()
    with pytest.raises(QuantityError, match="generated part 'weather': the study does not make it"):
        refresh(name, docs=tmp_path)
    assert before == page.read_text()
