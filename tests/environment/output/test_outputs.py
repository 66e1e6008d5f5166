"""What commands write: never over an input, another output, or a file of somebody else."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.output.guard import guarded, is_ours
from hpcrowd.environment.output.whole import remove_killed, whole_file, whole_folder
from hpcrowd.scenarios.cli import CommandFiles
from hpcrowd.scenarios.outputs import OUTPUTS, inputs_of

from tests.support.writing import COMMANDS, LOG

#: Parameters of commands that name files and folders to read; fetch and forecast add to theirs.
INPUTS = (
    "folder", "keep", "machine", "mapping", "past", "path", "paths", "platform", "records", "runs",
    "source", "trace", "traces", "what",
)  # fmt: skip

#: How the help of an option begins that names a file or folder to write.
WRITES = re.compile(r"(Write|Draw|Save|File (for|of the)|Folder for|\w+ to write)\b")

#: Commands that write, with OUT for what they write; each reads c.swf or m.json.
WRITING = {
    "fit": "fit lublin c.swf --out OUT",
    "learned": "fit learned:trees=2 c.swf --out OUT",
    "stats": "stats c.swf --out OUT",
    "judge": "judge lublin c.swf --seeds 2 --out OUT",
    "convert": "convert c.swf OUT --output-format csv",
    "clean": "clean c.swf --no-user --out OUT",
    "window": "window c.swf --from 0d --to 1d --out OUT",
    "replay": "replay c.swf --out OUT",
    "gantt": "replay c.swf --gantt OUT",
    "drawing": "gantt c.swf --out OUT",
    "resample": "resample c.swf --days 14 --warm-up 7d --users rigid --out OUT",
    "validate": "validate c.swf --users rigid --out OUT",
    "report": "report c.swf --out OUT",
    "figures": "report c.swf --out report.html --figures OUT",
    "compare": "compare c.swf c.swf --out OUT",
    "dot": "sessions c.swf --user 1 --dot OUT",
    "png": "sessions c.swf --user 1 --png OUT",
    "machine": "machine slurm.conf --out OUT",
    "forecast": "forecast c.swf --futures 1 --hindcasts 0 --out OUT",
    "snapshot": "forecast c.swf --snapshot OUT",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trace, and links to it, as the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("c.swf").write_text(LOG)
    Path("soft.swf").symlink_to("c.swf")
    os.link("c.swf", "hard.swf")
    return tmp_path


def listing(folder="."):
    """Return the names in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def words(text, out):
    """Return the arguments of a command that writes ``out``."""
    return [out if one == "OUT" else one for one in text.split()]


def parameters():
    """Return each command, those of groups too, with its parameters."""
    for command in CommandFiles().values():
        for one in [command, *getattr(command, "commands", {}).values()]:
            yield one, one.params


def test_every_command_that_writes_can_be_forced():
    """A command with an output has --force, and no other has."""
    for command, known in parameters():
        names = {parameter.name for parameter in known}
        if command.name != "reproduce":
            assert bool(names & {*OUTPUTS}) == ("force" in names), command.name


def test_every_output_is_known():
    """A parameter that names a file, or whose help says so, is an input or one of the outputs."""
    for command, known in parameters():
        for parameter in known:
            about = (command.name, parameter.name)
            says = bool(WRITES.match(getattr(parameter, "help", None) or ""))
            if "Path" in str(parameter.bare_type()) or says:
                assert (parameter.name in OUTPUTS) == (parameter.name not in INPUTS), about
            if parameter.name in INPUTS:
                assert not says, about


def test_every_command_that_writes_is_attacked():
    """The commands that are killed, and that meet full disks, are all that have outputs."""
    attacked = {line.split()[0] for line in COMMANDS.values()}
    for name, command in CommandFiles().items():
        assert name in attacked or not {one.name for one in command.params} & {*OUTPUTS}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((command, "hard.swf") for command in WRITING),
        *(("stats", name) for name in ("c.swf", "soft.swf", "./x/../c.swf")),
        *((command, ".") for command in WRITING),
        ("replay", ".."),
    ],
)
def test_an_input_is_never_written(here, call, command, name):
    """Neither it, whatever its name, nor the folder that holds it, also with --force."""
    Path("x").mkdir()
    Path("provenance.json").write_text("{}")
    before = listing()
    for force in ([], ["--force"]):
        code, out, err = call(*words(WRITING[command], name), *force)
        assert (2, "", 1) == (code, out, err.count("\n")), err
        assert Path("c.swf").read_text() == LOG
        assert before == listing()


def test_results_that_hold_an_input_stay(here, call):
    """A folder of results is not replaced by a command that reads a file in it."""
    Path("x").mkdir()
    Path("x/provenance.json").write_text("{}")
    Path("c.swf").rename("x/c.swf")
    code, _, err = call("replay", "x/c.swf", "--out", "x", "--force")
    assert (2, True) == (code, "would replace x/c.swf" in err)
    assert ["c.swf", "provenance.json"] == listing("x")


@pytest.mark.parametrize("command", ["fit", "clean", "dot", "convert"])
def test_files_of_others_need_force(here, call, command):
    """A file that hpcrowd did not write stays; with --force it is replaced; links stay links."""
    Path("mine.html").write_text("<html>three years of work</html>")
    Path("link.html").symlink_to("mine.html")
    for name in ("mine.html", "link.html"):
        code, _, err = call(*words(WRITING[command], name))
        assert (2, 1) == (code, err.count("\n"))
        assert "--force" in err
        assert "three years" in Path("mine.html").read_text()
    code, _, err = call(*words(WRITING[command], "link.html"), "--force")
    assert 0 == code, err
    assert Path("link.html").is_symlink()
    assert "three years" not in Path("mine.html").read_text()


slow = pytest.mark.slow
FILES = [
    ("fit", "m.json"), ("dot", "g.dot"), ("gantt", "g.svg"),
    *(pytest.param(*one, marks=slow)
      for one in (("stats", "s.html"), ("png", "g.png"), ("gantt", "g.png"), ("gantt", "g.pdf"))),
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), FILES)
def test_own_files_are_replaced(here, call, command, name):
    """The content shows who wrote a model, a page and a picture; an empty file may be written."""
    Path(name).touch()
    assert 0 == call(*words(WRITING[command], name))[0]
    assert is_ours(Path(name))
    assert 0 == call(*words(WRITING[command], name))[0]


def test_generated_traces_show_where_they_come_from(here, call):
    """Packed or not, a generated trace is replaced by the next one."""
    for name in ("g.swf", "g.swf.gz"):
        for _ in range(2):
            code, _, err = call(
                "generate", "lublin", "--processors", "8", "--jobs", "9", "-o", name
            )
            assert 0 == code, err
    Path("o.swf.gz").write_bytes(gzip.compress(LOG.encode()))
    assert not is_ours(Path("o.swf.gz"))


def test_outputs_are_not_each_other(here, call):
    """Two outputs in one place are refused before anything is computed."""
    for out, gantt in (("r", "r/g.png"), ("g.png", "./g.png"), ("r", "r/deep/g.png")):
        code, _, err = call("replay", "c.swf", "--out", out, "--gantt", gantt)
        assert (2, 1) == (code, err.count("\n"))
        assert not Path(out).exists()


def test_files_named_in_files_are_inputs(here):
    """A TOML file, what it names relative to it, and what that names; options such as mean:FILE."""
    Path("deep").mkdir()
    Path("deep/price.csv").write_text("t,v\n")
    Path("deep/more.toml").write_text('signal = "price.csv"\n')
    Path("all.toml").write_text('trace = "c.swf"\n[[parts]]\nfile = "deep/more.toml"\n')
    found = {path.resolve() for path in inputs_of({"file": Path("all.toml")})}
    names = ("all.toml", "c.swf", "deep/more.toml", "deep/price.csv")
    assert {Path(name).resolve() for name in names} == found
    assert [Path("c.swf")] == inputs_of({"signal": "mean:c.swf", "scheduler": "deep"})


def test_names_next_to_a_trace_are_protected(here, call):
    """The table of names that goes with OUT is not written over IN."""
    table = "submit,run,user_name\n0,10,alice\n"
    Path("t.names.csv").write_text(table)
    code, _, err = call("convert", "t.names.csv", "t.swf", "--force")
    assert (2, 1) == (code, err.count("\n")), err
    assert table == Path("t.names.csv").read_text()
    assert not Path("t.swf").exists()


def test_links_stay_links(here):
    """What they lead to is replaced where it is, a folder too, also on another file system."""
    shared = Path("/dev/shm")
    other = (shared if shared.is_dir() else here) / f"hpcrowd-{os.getpid()}.txt"
    Path("far").symlink_to(other)
    try:
        with whole_file("far") as temporary:
            temporary.write_text("new")
        assert (True, "new") == (Path("far").is_symlink(), other.read_text())
    finally:
        other.unlink(missing_ok=True)
    Path("real").mkdir()
    Path("link").symlink_to("real")
    with whole_folder("link") as place:
        (place / "provenance.json").write_text("{}")
    assert (True, ["provenance.json"]) == (Path("link").is_symlink(), listing("real"))


def test_leftovers_of_killed_processes_are_removed(here):
    """Those of processes that run stay."""
    with whole_file("x") as temporary:
        temporary.write_text("half")
        dead = Path(temporary.name.replace(f".{os.getpid()}.", ".999999999."))
        dead.write_text("half")
        remove_killed(Path("x"))
        assert (True, False) == (temporary.exists(), dead.exists())


def test_a_folder_killed_while_it_is_replaced_comes_back(here, call):
    """Killed between two renames, the old folder has another name: the next command restores it."""
    program = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from hpcrowd.environment.output.whole import whole_folder\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with whole_folder('out') as place:\n"
        "    (place / 'provenance.json').write_text('new')\n"
    )
    for link in (False, True):
        place = Path("out")
        if link:
            place = Path("elsewhere")
            Path("out").rename(place)
            Path("out").symlink_to(place)
        else:
            place.mkdir()
        Path("out/provenance.json").write_text("old")
        subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
        assert not place.exists()
        assert 2 == call("replay", "c.swf", "--scheduler", "easy:patience=1", "--out", "out")[0]
        assert "old" == Path("out/provenance.json").read_text()
        assert [] == [name for name in listing() if name.startswith(".")]
        subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
        with pytest.raises(KeyboardInterrupt), whole_folder("out"):
            raise KeyboardInterrupt
        assert "old" == Path("out/provenance.json").read_text()
        assert [] == [name for name in listing() if name.startswith(".")]


def test_python_callers_replace_what_they_name(here):
    """Without a command nothing is guarded; within one its inputs are."""
    with whole_file("c.swf") as temporary:
        temporary.write_text("new")
    with (
        guarded([Path("hard.swf")]),
        pytest.raises(HpcrowdError, match="which is read"),
        whole_file("hard.swf"),
    ):
        pass
