"""The rules of the house: who imports whom, how large files and folders are, what is installed."""

import ast
import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from functools import cache
from importlib import import_module
from inspect import signature
from itertools import chain

import hpcrowd as hc
import networkx as nx
import pytest
from hpcrowd.names import declared, namespaces

#: Each may import itself and those before it.
FLOORS = ("environment", "agents", "analysis", "scenarios")

#: Lines of a file. One idea is one file; a longer one holds several ideas.
LONGEST_FILE = 700

#: Most lines of a function of a command.
LONGEST_COMMAND = 60

#: Modules side by side in a folder: as many as a stranger takes in.
MOST_MODULES = 15

#: What marks an import that closes a circle between folders, with the reason behind it.
CIRCLE = "# circle: "


def sources(root):
    """Return the Python files of the four floors."""
    return [path for floor in FLOORS for path in sorted((root / floor).rglob("*.py"))]


@cache
def imports_of(code):
    """Line and module of every absolute import, also inside functions and for type checking."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.append((node.lineno, node.module or ""))
    return found


# ---- who imports whom -------------------------------------------------------------------------


def test_imports_run_one_way(root):
    """Imports run scenarios -> analysis -> agents -> environment, never back, nor to tests."""
    wrong, right = [], 0
    for path in sources(root):
        floor = path.relative_to(root).parts[0]
        for line, imported in imports_of(path.read_text()):
            parts = imported.split(".")
            inside = parts[0] == "hpcrowd" and len(parts) > 1
            right += inside
            back = inside and FLOORS.index(parts[1]) > FLOORS.index(floor)
            if back or parts[0] in ("tests", "conftest", "pytest", "hypothesis"):
                wrong.append(f"{path.relative_to(root)}:{line} imports {imported}")
    assert [] == wrong
    assert right > 20


def room(module, root):
    """Return the folder of a module; a file at the top of a floor counts by itself."""
    place = root.joinpath(*module.split(".")[1:])
    if place.is_dir():
        return module
    return module if place.parent.parent == root else module.rpartition(".")[0]


def circles(root, opened=CIRCLE):
    """Return each import that is part of a circle between folders and does not say why."""
    graph = nx.DiGraph()
    where = defaultdict(list)
    for path in sources(root):
        lines = (code := path.read_text()).splitlines()
        parts = path.relative_to(root).with_suffix("").parts
        own = room(".".join(["hpcrowd", *parts]).removesuffix(".__init__"), root)
        for line, imported in imports_of(code):
            if not imported.startswith("hpcrowd.") or opened in lines[line - 1]:
                continue
            other = room(imported, root)
            if other != own:
                graph.add_edge(own, other)
                where[own, other].append(f"{path.relative_to(root)}:{line} imports {imported}")
    return [
        place
        for group in nx.strongly_connected_components(graph)
        for edge in graph.subgraph(group).edges
        for place in where[edge]
    ]


def test_no_circles_between_folders(root):
    """Folders import each other one way, but for lines that say why not, in three words or more."""
    assert [] == circles(root)
    lines = [line for path in sources(root) for line in path.read_text().splitlines()]
    reasons = [line.partition(CIRCLE)[2] for line in lines if CIRCLE in line]
    assert [] == [reason for reason in reasons if len(reason.split()) < 3]
    assert len(circles(root, opened="no line has this")) > len(reasons)


# ---- files and folders ------------------------------------------------------------------------


def test_files_functions_and_folders_are_small(root):
    """A file holds one idea, a command is seen at a glance, and a folder is what one takes in."""
    files = (*sources(root), *(root / "tests").rglob("*.py"))
    lengths = {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in files}
    assert {} == {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    functions = {
        (path.stem, node.name): node.end_lineno - node.lineno + 1
        for path in (root / "scenarios/commands").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(functions) > 100
    assert {} == {name: length for name, length in functions.items() if length > LONGEST_COMMAND}
    modules = Counter(path.parent for path in sources(root) if path.name != "__init__.py")
    assert {} == {folder: number for folder, number in modules.items() if number > MOST_MODULES}


def test_each_folder_has_its_tests(root):
    """The tests of ``environment/engine`` are in ``tests/environment/engine``, and so on."""
    rooms = {path.parent for path in sources(root) if path.name != "__init__.py"}
    without = [
        folder
        for folder in (str(room.relative_to(root)) for room in rooms)
        if not any((root / "tests" / folder).glob("test_*.py"))
    ]
    assert [] == sorted(without)
    tested = {
        path.parent.relative_to(root / "tests") for path in (root / "tests").rglob("test_*.py")
    }
    assert [] == sorted(
        str(folder)
        for folder in tested
        if folder.parts[0] not in ("house", "attacks", "support") and not (root / folder).is_dir()
    )


def test_the_run_loop_knows_no_part(root):
    """It imports none of their folders, and a simulation is made with eight things at most."""
    parts = {"grid", "holds", "machine", "platform", "power", "signals", "state"}
    for name in ("simulation", "cluster"):
        found = imports_of((root / f"environment/{name}.py").read_text())
        assert len(found) > 10
        assert not parts & {one.split(".")[2] for one in found if one.count(".") > 1}, name
    assert len(signature(hc.Simulation).parameters) <= 8


def test_parts_import_in_their_order(root):
    """The heart imports no part, and a part none below it, but for those that are listed."""
    house = runpy.run_path(str(root / "docs" / "house.py"))
    assert house["AGAINST_THE_ORDER"] == set(house["against_the_order"]())


def test_init_files_hold_only_public_names(root):
    """``__init__.py`` of a package defines no function or class."""
    for path in (path for path in sources(root) if path.name == "__init__.py"):
        tree = ast.parse(path.read_text())
        defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        assert [] == defined, path


# ---- public names -----------------------------------------------------------------------------


#: Most names in ``hpcrowd`` itself, and in a module of it.
MOST_FLAT, MOST_IN_MODULE = 75, 60


def public_names():
    """Return the names that hpcrowd and each of its modules declare, without these modules."""
    found = {
        place: {name for name, origin in declared(place).items() if origin}
        for place in namespaces()
    }
    return {place: names for place, names in found.items() if names}


@pytest.mark.parametrize("place", public_names())
def test_public_names_resolve(place, root):
    """What a module declares can be had from it, and it is in its ``__all__`` and ``dir``."""
    module = import_module(place)
    names = public_names()[place]
    assert names <= set(module.__all__) & set(dir(module))
    for name in names:
        assert getattr(module, name).__doc__ is not None
    if place == "hpcrowd":  # a module of the same name would take its place once imported
        assert set() == names & {path.stem for path in (root / "src/hpcrowd").iterdir()}


def test_public_names_are_few_and_each_is_in_one_place():
    """``import hpcrowd as hc`` has what scripts need most; ``hc.policies`` and so on the rest."""
    names = public_names()
    assert [] == [name for name, times in Counter(chain(*names.values())).items() if times > 1]
    assert len(names.pop("hpcrowd")) <= MOST_FLAT
    assert {} == {place: len(of) for place, of in names.items() if len(of) > MOST_IN_MODULE}
    assert {*FLOORS, *(place.removeprefix("hpcrowd.") for place in names)} <= set(dir(hc))


def test_no_floor_imports_public_names(root):
    """The four floors import what they need from the module that has it."""
    codes, public = {path: path.read_text() for path in sources(root)}, public_names()
    found = [
        f"{path}:{line}"
        for path, code in codes.items()
        for line, name in imports_of(code)
        if name in public and "__version__" not in code.splitlines()[line - 1]
    ]
    assert [] == found


@pytest.mark.parametrize(
    ("place", "name", "message"),
    [
        ("hpcrowd", "EASY", "'hpcrowd' has no attribute 'EASY'; it is hpcrowd.policies.EASY"),
        ("hpcrowd.formats", "read_swf", "'read_swf'; it is hpcrowd.read_swf"),
        ("hpcrowd.formats", "EASY", "'EASY'; it is hpcrowd.policies.EASY"),
        ("hpcrowd", "repaly", "'hpcrowd' has no attribute 'repaly'$"),
    ],
)
def test_names_that_are_elsewhere(place, name, message):
    """The message says where a name is; Python itself suggests similar ones."""
    with pytest.raises(AttributeError, match=message) as caught:
        getattr(import_module(place), name)
    assert (name, place) == (caught.value.name, caught.value.obj.__name__)


# ---- what is installed ------------------------------------------------------------------------

#: What uses two packages of another distribution that are called like floors, and hpcrowd.
BOTH = """
import agents, analysis, hpcrowd as hc
print(agents.MINE, analysis.MINE, hc.__file__, hc.agents.__name__)
trace = hc.parse_swf("; MaxProcs: 4\\n1 0 0 10 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1\\n")
print(len(trace), hc.Recipe.__module__, hc.metrics.METRICS is not None)
"""


def built(target, source, out):
    """Build a wheel or a source distribution, and return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (found,) = out.iterdir()
    return found


@pytest.mark.slow
def test_what_is_distributed(root, tmp_path):
    """A wheel has hpcrowd whole and alone, works, and a source distribution makes the same."""
    with tarfile.open(built("sdist", root, tmp_path / "sdist")) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.glob("hpcrowd-*") if path.is_dir())
    wheel = built("wheel", root, tmp_path / "wheel")
    again = built("wheel", source, tmp_path / "again")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as two:
        one.extractall(site)
        names = set(one.namelist())
        assert names == set(two.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {"hpcrowd", f"hpcrowd-{hc.__version__}.dist-info"} == tops
    assert {f"hpcrowd/{path.relative_to(root)}" for path in sources(root)} <= names
    assert "hpcrowd/environment/traces/archive/archive.csv" in names
    for name in ("agents", "analysis"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"MINE = 'other-{name}'\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BOTH], cwd=tmp_path, check=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(site)}, text=True,
    )  # fmt: skip
    own = site / "hpcrowd/__init__.py"
    expected = f"other-agents other-analysis {own} hpcrowd.agents\n1 hpcrowd.agents.presets True\n"
    assert expected == done.stdout
