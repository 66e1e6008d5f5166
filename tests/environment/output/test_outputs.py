"""What commands write: never over an input, another output, or a file of somebody else."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.output.guard import check_replaceable, guarded, kind_of
from hpcrowd.environment.output.whole import (
    remove_killed,
    remove_temporary,
    whole_file,
    whole_folder,
)
from hpcrowd.scenarios.cli import CommandFiles
from hpcrowd.scenarios.outputs import OUTPUTS, inputs_of

from tests.support.writing import COMMANDS, LOG
from tests.support.writing import FILES as FILES_READ

#: Parameters of commands that name files and folders to read; fetch and forecast add to theirs.
INPUTS = (
    "folder", "keep", "machine", "mapping", "past", "path", "paths", "platform", "records", "runs",
    "source", "trace", "traces", "what",
)  # fmt: skip

#: How the help of an option begins that names a file or folder to write.
WRITES = re.compile(r"(Write|Draw|Save|File (for|of the)|Folder for|\w+ to write)\b")

#: Commands that read c.swf and write ``out``.
WRITING = {name: line for name, line in COMMANDS.items() if "c.swf" in line} | {
    "convert": "convert c.swf out --output-format csv",
    "dot": "sessions c.swf --user 1 --dot out",
    "report": "report c.swf -o out",
    "figures": "report c.swf --out report.html --figures out",
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


def words(command, out):
    """Return the arguments of a command that writes ``out``."""
    given = [one for one in (COMMANDS | WRITING)[command].split() if one != "--force"]
    return [out if one.startswith("out") else one for one in given]


def parameters():
    """Return each command, those of groups too, with its parameters."""
    for command in CommandFiles().values():
        for one in [command, *getattr(command, "commands", {}).values()]:
            yield one, one.params


def test_every_output_is_known_and_can_be_forced():
    """A parameter that names a file, or whose help says so, is read or written, then by force."""
    for command, known in parameters():
        names = {parameter.name for parameter in known}
        if command.name != "reproduce":
            assert bool(names & {*OUTPUTS}) == ("force" in names), command.name
        for parameter in known:
            about = (command.name, parameter.name)
            says = bool(WRITES.match(getattr(parameter, "help", None) or ""))
            if "Path" in str(parameter.bare_type()) or says:
                assert (parameter.name in OUTPUTS) == (parameter.name not in INPUTS), about
            assert not (says and parameter.name in INPUTS), about


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
    """Neither it, whatever its name, nor the folder (of results) that has it, also with --force."""
    Path("x").mkdir()
    Path("provenance.json").write_text("{}")
    before = listing()
    for force in ([], ["--force"]):
        code, out, err = call(*words(command, name), *force)
        assert (2, "", 1) == (code, out, err.count("\n")), err
        assert Path("c.swf").read_text() == LOG
        assert before == listing()


@pytest.mark.parametrize("command", ["fit", "clean", "dot", "convert"])
def test_files_of_others_need_force(here, call, command):
    """A file that hpcrowd did not write stays; with --force it is replaced; links stay links."""
    Path("mine.html").write_text("<html>three years of work</html>")
    Path("link.html").symlink_to("mine.html")
    for name in ("mine.html", "link.html"):
        code, _, err = call(*words(command, name))
        assert (2, 1) == (code, err.count("\n"))
        assert "--force" in err
        assert "three years" in Path("mine.html").read_text()
    code, _, err = call(*words(command, "link.html"), "--force")
    assert 0 == code, err
    assert Path("link.html").is_symlink()
    assert "three years" not in Path("mine.html").read_text()


slow = pytest.mark.slow
FILES = [
    ("fit", "m.json"), ("dot", "g.dot"), ("gantt", "g.svg"), ("generate", "g.swf"),
    ("generate", "g.swf.gz"),
    *(pytest.param(*one, marks=slow)
      for one in (("stats", "s.html"), ("sessions", "g.png"), ("gantt", "g.png"),
                  ("gantt", "g.pdf"))),
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), FILES)
def test_own_files_are_replaced(here, call, command, name):
    """The content shows who wrote a model, a page and a picture; an empty file may be written."""
    Path(name).touch()
    assert 0 == call(*words(command, name))[0]
    assert kind_of(Path(name)) is not None
    assert 0 == call(*words(command, name))[0]


def test_a_trace_of_somebody_is_not_ours(here):
    """Packed or not, unlike a generated one."""
    Path("o.swf.gz").write_bytes(gzip.compress(LOG.encode()))
    assert kind_of(Path("o.swf.gz")) is None


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
    with whole_folder("link"):
        pass
    assert (True, ["provenance.json"]) == (Path("link").is_symlink(), listing("real"))


def test_leftovers_of_killed_processes_are_removed(here):
    """Those of processes that run stay."""
    with whole_file("x") as temporary:
        temporary.write_text("half")
        dead = Path(temporary.name.replace(f".{os.getpid()}.", ".999999999."))
        dead.write_text("half")
        remove_killed(Path("x"))
        assert (True, False) == (temporary.exists(), dead.exists())


#: Replaces ``out``, killed before its Nth change of the file system, for each N up to the last.
KILLED = """
import os, signal, sys
from pathlib import Path
from hpcrowd.environment.output.whole import whole_folder

def results(text):
    with whole_folder("out") as place:
        (place / "A").mkdir()
        for name in ("numbers.csv", "A/numbers.csv", text):
            (place / name).write_text(text)

def killed(number):
    if os.fork():
        return os.wait()[1] != 0
    left = [number]
    for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
        def call(*given, how=getattr(os, name), **more):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return how(*given, **more)
        setattr(os, name, call)
    results("new")
    os._exit(0)

def check(whole):
    found = {path.name: path for path in Path().rglob("*")}
    for name in ("mine.txt", "notes.txt", "deep.txt"):
        assert "mine" == found[name].read_text(), name
    assert "nowhere" == os.readlink(found["link"]) and found["empty"].is_dir()
    if whole or Path("out").exists():
        text = Path("out/numbers.csv").read_text()
        assert text == Path("out/A/numbers.csv").read_text() == Path("out", text).read_text()
        assert not Path("out", "new" if text == "old" else "old").exists()
    if whole:
        there = {"A/mine.txt", "notes.txt", "sub/deep.txt", "link", "empty"}
        assert there <= {str(path.relative_to("out")) for path in Path("out").rglob("*")}
        assert [] == [path for path in Path().iterdir() if path.name.startswith(".")]

results("old")
for name in ("A/mine.txt", "notes.txt", "sub/deep.txt"):
    Path("out", name).parent.mkdir(exist_ok=True)
    Path("out", name).write_text("mine")
Path("out/link").symlink_to("nowhere")
Path("out/empty").mkdir()
if "link" in sys.argv:
    Path("out").rename("elsewhere")
    Path("out").symlink_to("elsewhere")
number = 1
while killed(number):
    check(False)
    results("old")
    check(True)
    number += 1
check(True)
print(number)
"""


@pytest.mark.parametrize("link", ["", pytest.param("link", marks=slow)])
def test_a_folder_is_whole_and_the_readers_files_stay_wherever_it_is_killed(here, link):
    """Between any two changes: results are the old or the new, and the next command tidies up."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, link], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert "" == done.stderr
    assert 12 < int(done.stdout)


def test_an_interrupt_restores_or_finishes(here, monkeypatch):
    """A signal in the moment of the replacement loses neither results nor the reader's files."""
    with whole_folder("out") as place:
        (place / "old").touch()
    Path("out/mine").touch()
    rename, replace = Path.rename, Path.replace

    def stop(*_):
        monkeypatch.setattr(Path, "rename", rename)
        monkeypatch.setattr(Path, "replace", replace)
        remove_temporary()  # what a thread does that ends the process from outside
        assert (True, True) == (Path("out/old").exists(), Path("out/mine").exists())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt), whole_folder("out"):
        pass
    assert ["mine", "old", "provenance.json"] == listing("out")
    assert [] == [name for name in listing() if name.startswith(".")]


#: Commands that write a folder, with what makes their results other ones; unless given, that the
#: log has changed.
FOLDERS = {
    "replay": "--scheduler fcfs", "demo": "--days 2", "populate": "--days 2",
    "reproduce": "--jobs 1001", "compare": "", "report": "", "resample": "", "grid": "", "run": "",
    "validate": "", "forecast": "",
}  # fmt: skip


#: The reader's files among results.
OF_READER = ("out/sub/notes.txt", "out/link", "out/hard.swf")


def contents(folder="."):
    """Return the bytes of each file, and where each link leads."""
    return {
        str(path): path.readlink() if path.is_symlink() else path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file() or path.is_symlink()
    }


@pytest.mark.parametrize(
    "command", [one if one == "replay" else pytest.param(one, marks=slow) for one in FOLDERS]
)
def test_what_hpcrowd_did_not_write_stays(here, call, command):
    """Other results need --force; the same say what they replace; the reader's files stay."""
    for name, text in FILES_READ.items():
        Path(name).write_text(text)
    given = [one for one in COMMANDS[command].split() if one != "--force"]
    other = FOLDERS[command].split()
    assert call(*given)[0] in (0, 1)
    Path("out/sub").mkdir()
    Path("out/sub/notes.txt").write_text("mine")
    Path("out/link").symlink_to("../c.swf")
    os.link("c.swf", "out/hard.swf")
    mine = {name: contents("out")[name] for name in OF_READER}
    code, _, said = call(*given)
    assert (True, 1) == (code in (0, 1), said.count("out: replaced the results that were there; "))
    assert "left hard.swf and 2 more, which hpcrowd did not write" in said
    assert mine == {name: contents("out").get(name) for name in mine}
    if not other:
        log = Path("c.swf").read_text()
        Path("c.swf").unlink()
        Path("c.swf").write_text(f"{log}; Note: another\n")
    before = contents()
    code, _, said = call(*given, *other)
    assert (2, True) == (code, "out: holds other results (" in said), said
    assert before == contents()
    code, _, said = call(*given, *other, "--force")
    assert code in (0, 1), said
    assert mine == {name: contents("out").get(name) for name in mine}
    edited = next(Path("out").rglob("*.json"))
    edited.write_text('{"my": "own"}')
    before = contents()
    for force in ([], ["--force"]):
        code, _, said = call(*given, *other, *force)
        assert (2, 1) == (code, said.count("\n")), said
        assert before == contents()


def asked(*, force=False, **request):
    """Guard as the command does that is asked for something."""
    return guarded([], force=force, request=lambda: request)


def test_other_results_and_those_of_unknown_origin_stay(here):
    """Those of another command, setting or input, of a pipe, of Python, of earlier versions."""
    first = {"command": "replay", "scheduler": "easy", "sha256 of a.swf": "1"}
    with asked(**first), whole_folder("out") as place:
        (place / "jobs.parquet").touch()
    with whole_folder("python"):
        pass
    for name in ("old", "other", "broken"):
        Path(name).mkdir()
        Path(name, "notes.txt").write_text("mine")
    Path("old/provenance.json").write_text('{"configuration": {}}')
    Path("broken/provenance.json").write_text(
        Path("out/provenance.json").read_text().replace("easy", "fcfs")
    )
    before = contents()
    for folder, change, says in (
        ("out", {"command": "demo"}, "holds results of hpcrowd replay; "),
        ("out", {"scheduler": "fcfs"}, "holds other results (scheduler easy there, fcfs here); "),
        ("out", {"sha256 of a.swf": "2"}, "(sha256 of a.swf 1 there, 2 here); "),
        ("out", {"seed": "1"}, "(seed not given there, 1 here); "),
        ("out", {"contents of trace": "unknown"}, "unknown here"),
        ("python", {}, "holds results of a Python script; "),
        ("other", {}, "exists and is not a folder of results; "),
        ("old", {}, "or is of an earlier version"),
        ("old", {"force": True}, "or is of an earlier version"),
        ("broken", {"force": True}, "it was changed"),
    ):
        with asked(**first | change), pytest.raises(HpcrowdError, match=re.escape(says)):
            check_replaceable(folder)
    assert before == contents()
    for folder in ("out", "python", "other"):
        with asked(**first | {"command": "demo", "force": True}), whole_folder(folder):
            pass
    assert ["provenance.json"] == listing("out") == listing("python")
    assert ["notes.txt", "provenance.json"] == listing("other")


def write_into(folder, name):
    """Write results, a file of that name."""
    with whole_folder(folder) as place:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("new")


def test_a_new_result_never_takes_the_place_of_the_readers_file(here):
    """What results were not there before may have the name of a file that is: the file stays."""
    for number, (mine, new) in enumerate((("a", "a"), ("a/b", "a"), ("a", "a/b"))):
        folder = Path(f"out{number}")
        with whole_folder(folder):
            pass
        (folder / mine).parent.mkdir(exist_ok=True)
        (folder / mine).write_text("mine")
        with pytest.raises(HpcrowdError, match="move it away"):
            write_into(folder, new)
        assert "mine" == (folder / mine).read_text()
        assert ["a", "provenance.json"] == listing(folder)


def test_a_file_of_another_kind_stays(here, call):
    """A model is not replaced by a state without --force; what is replaced is said."""
    snapshot = words("snapshot", "m.json")
    assert 0 == call(*words("fit", "m.json"))[0]
    before = Path("m.json").read_bytes()
    code, _, said = call(*snapshot)
    assert (2, True) == (code, "(hpcrowd workload model, not hpcrowd state)" in said)
    assert before == Path("m.json").read_bytes()
    code, _, said = call(*snapshot, "--force")
    assert (0, 1) == (code, said.count("m.json: replaced the one that was there\n"))


def test_a_file_that_appears_meanwhile_stays(here):
    """It is looked at again in the moment in which it would be replaced."""

    def write():
        with whole_file("late.json") as temporary:
            temporary.write_text("new")
            Path("late.json").write_text("mine")

    with guarded([]) as guard:
        guard.outputs.add(Path("late.json").resolve())
        with pytest.raises(HpcrowdError, match="nothing in it shows"):
            write()
    assert "mine" == Path("late.json").read_text()


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
