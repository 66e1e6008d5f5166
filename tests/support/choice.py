"""Which slow tests a change can break: those whose room changed, or imports what changed.

``python -m tests.support.choice`` prints the files of slow tests, and the pages of the
documentation, that concern what changed since the commit of ``.ci/verified``, one a line. With
``HPCROWD_CI=all`` it prints the folder of all tests.

A test concerns the modules of its room (``tests/agents/work`` those of ``agents/work`` and below),
what it, its helpers and the modules next to them import, in functions too but not for type checks,
and files that it names. If one of these changed, or imports from its own folder what changed,
the test is chosen. An entry of a registry, such as ``"easy": "hpcrowd...easy:EASY"``, counts for
tests of the registry's room, for those that import the registry, and for those with the name in a
text; so do folders of studies, and commands where a text is their name, begins with it, or has it
behind ``hpcrowd``. Files that are not Python belong to all modules of their folder. What is further
away is left to the quick tests, which always run.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.places import ROOT

FLOORS = ("environment", "agents", "analysis", "scenarios")

#: The folders with Python files, and the pattern of these.
PLACES = {"src/hpcrowd": "*.py"} | dict.fromkeys((*FLOORS, "tests", "docs"), "**/*.py")

#: What every test depends on.
EVERYTHING = (
    "pyproject.toml", "tests/conftest.py", "tests/__init__.py", "src/hpcrowd/__",
    "src/hpcrowd/names.py",
)  # fmt: skip

#: What no slow test depends on, unless it names it.
NOTHING = (
    ".ci/", ".github/", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "LICENSE",
    "benchmarks/",
)  # fmt: skip

#: The file with the commit at which everything passed, and how far back that may be.
VERIFIED, MOST_BEHIND = ".ci/verified", 250

#: The test that runs the pages of the documentation, one at a time.
PAGES = "tests/house/test_pages.py::test_page_does_what_it_says"

#: The name of a command in a text: alone, at the beginning, or behind ``hpcrowd``.
COMMAND = re.compile(r"(?:^|\bhpcrowd )([a-z][\w-]*)(?=$|[ `])", re.MULTILINE)

#: Where a thing of a registry is: a module, and what of it.
PLACE = re.compile(r"hpcrowd(\.\w+)+:\w+")


def is_place(node: ast.AST) -> bool:
    """Return whether a node is the place of a thing in a registry."""
    return isinstance(node, ast.Constant) and bool(PLACE.fullmatch(str(node.value)))


@dataclass
class Source:
    """What a file says of others."""

    uses: set[str] = field(default_factory=set)  # dotted names
    entries: dict[str, str] = field(default_factory=dict)  # of a registry: module:name
    words: set[str] = field(default_factory=set)  # its texts, and the words in them
    commands: set[str] = field(default_factory=set)  # what may be commands in its texts

    @classmethod
    def of(cls, code: str) -> Source:
        """Return what Python code says."""
        found = cls()
        found._read(ast.parse(code), set())
        return found

    def _read(self, node: ast.AST, aliases: set[str]) -> None:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Import():
                for name in node.names:
                    self.uses.add(name.name)
                    if name.name == "hpcrowd":
                        aliases.add(name.asname or name.name)
            case ast.ImportFrom(level=0):
                self.uses |= {f"{node.module}.{name.name}" for name in node.names}
            case ast.Attribute(value=ast.Name(id=name)) if name in aliases:
                self.uses.add(f"hpcrowd.{node.attr}")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr=place)) if (
                name in aliases
            ):
                self.uses.add(f"hpcrowd.{place}.{node.attr}")
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant):
                        places = [one.value for one in ast.walk(value) if is_place(one)]
                        self.entries |= {str(key.value): place for place in places[:1]}
            case ast.Constant(value=str(text)):
                self.words |= {text, *re.findall(r"[\w.-]+", text), *re.findall(r"[\w-]+", text)}
                self.commands |= set(COMMAND.findall(text))
                if is_place(node):
                    self.entries[text] = text
        for child in ast.iter_child_nodes(node):
            self._read(child, aliases)


class House:
    """The files of a checkout, and what each test depends on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources = {
            str(path.relative_to(root)): Source.of(path.read_text())
            for folder, pattern in PLACES.items()
            for path in sorted((root / folder).glob(pattern))
        }
        self.rooms: dict[Path, set[str]] = defaultdict(set)  # the modules of each folder
        for file in self.sources:
            self.rooms[Path(file).parent].add(file)
        self.public = dict(self._public())
        self.uses = {
            file: {used for name in source.uses for used in self.files_of(name)}
            for file, source in self.sources.items()
        }
        self.named = self._named()
        self.commands = {
            path.stem.replace("_", "-"): str(path.relative_to(root))
            for path in (root / "scenarios").glob("commands/*/[!_]*.py")
        }

    def _public(self) -> Iterator[tuple[str, str]]:
        """Yield each public name with its file, and each module of public names with its own."""
        for path in (self.root / "src/hpcrowd").glob("*.py"):
            place = "hpcrowd" if path.stem == "__init__" else f"hpcrowd.{path.stem}"
            yield place, str(path.relative_to(self.root))
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.level and node.module:
                    for name in node.names:
                        yield f"{place}.{name.name}", self._file(node.module.split("."))

    def _named(self) -> dict[str, set[str]]:
        """Return the files of what is called by name: entries of registries, and studies."""
        found = defaultdict(set)
        for source in self.sources.values():
            for name, module in source.entries.items():
                found[name] |= set(self.files_of(module.partition(":")[0]))
        for path in (self.root / "scenarios").glob("studies/*/study.py"):
            found[path.parent.name].add(str(path.relative_to(self.root)))
        return found

    def _file(self, parts: Sequence[str]) -> str:
        """Return the file of a module or package; none if there is no such file."""
        place = "/".join(parts)
        files = (f"{place}.py", f"{place}/__init__.py")
        return next((file for file in files if file in self.sources), "")

    def files_of(self, name: str) -> Iterator[str]:
        """Yield the file behind a dotted name: a module, or the one that a public name is in."""
        if name in self.public:
            yield from filter(None, (self.public[name], self.public.get(name.rpartition(".")[0])))
        elif name.startswith(("hpcrowd.", "tests.", "docs.")):
            parts = name.removeprefix("hpcrowd.").split(".")
            file = self._file(parts) or self._file(parts[:-1])
            if file:
                yield file

    def begin(self, test: str) -> set[str]:
        """Return the files that a file of tests names: the rest is what these import."""
        helpers, left = set(), [test]
        while left:
            file = left.pop()
            if file not in helpers:
                helpers.add(file)
                left += [used for used in self.uses[file] if used.startswith("tests/")]
        folder = Path(test).parent.relative_to("tests")
        room = self.rooms[folder]
        found = room | self.uses[test]
        if len(folder.parts) > 1:  # not of a whole floor
            found |= {file for file in self.sources if file.startswith(f"{folder}/")}
        for file in tuple(found):
            for module in self.sources[file].entries.values():
                found |= set(self.files_of(module.partition(":")[0]))
        for file in helpers | room:
            found |= self.uses[file]
        for file in helpers:
            found |= self.called(self.sources[file].words, self.sources[file].commands)
        return found | helpers

    def begin_of_page(self, page: str) -> set[str]:
        """Return the files that a page of the documentation names."""
        text = (self.root / page).read_text()
        names = re.findall(r"\bhpcrowd(?:\.\w+)+", text.replace("hc.", "hpcrowd."))
        found = {page} | {file for name in names for file in self.files_of(name)}
        code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
        lists = re.findall(r"\[\"([\w-]+)\"", code)  # as in invoke(app, ["replay", ...])
        return found | self.called(re.findall(r"[\w-]+", code), COMMAND.findall(code) + lists)

    def called(self, words: Iterable[str], commands: Iterable[str]) -> set[str]:
        """Return the files of what is called by name in a text."""
        found = {file for word in words if word in self.named for file in self.named[word]}
        return found | {self.commands[name] for name in commands if name in self.commands}

    def affected(self, changed: Iterable[str]) -> set[str]:
        """Return changed files, and those of their folders that import them."""
        left = set(changed)
        for file in tuple(left):
            folder = Path(file).parent
            if file.startswith(FLOORS) and not file.endswith(".py"):
                while folder.parts and not self.rooms[folder]:
                    folder = folder.parent
                left |= self.rooms[folder]
        seen: set[str] = set()
        while left:
            file = left.pop()
            seen.add(file)
            room = self.rooms[Path(file).parent]
            left |= {other for other in room if file in self.uses[other]} - seen
        return seen

    def chosen(self, changed: Iterable[str]) -> list[str]:
        """Return the files of slow tests, and the pages, that depend on changed files."""
        changed = [file for file in changed if not file.startswith(NOTHING)]
        everything = any(file.startswith(EVERYTHING) for file in changed)
        affected = self.affected(changed)
        names = {Path(file).name for file in changed if not file.endswith(".py")}
        pages = PAGES.partition("::")[0]
        found = [
            test
            for test in self.sources
            if Path(test).name.startswith("test_")
            and test != pages
            and re.search(r"mark\.(slow|endurance)", (self.root / test).read_text())
            and (everything or self.begin(test) & affected or self.sources[test].words & names)
        ]
        everything |= pages in affected
        for page in ("README.md", *(self.root / "docs").rglob("*.md")):
            name = str((self.root / page).relative_to(self.root))
            if everything or self.begin_of_page(name) & affected:
                found.append(f"{PAGES}[{name}]")
        return sorted(found)


def git(root: Path, *words: str) -> list[str]:
    """Return the lines that git prints."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed_since(commit: str, root: Path) -> list[str]:
    """Return the files that differ from a commit, also those that are not committed."""
    new = git(root, "ls-files", "--others", "--exclude-standard")
    return [*git(root, "diff", "--name-only", commit), *new]


def main(root: Path, everything: bool) -> str:
    """Print what is to be run, one a line; return the line that says what was chosen, and why."""
    if everything:
        print("tests")
        return "All slow and endurance tests run."
    commit = str(tomllib.loads((root / VERIFIED).read_text())["commit"])
    behind = len(git(root, "rev-list", f"{commit}..HEAD"))
    if behind > MOST_BEHIND:
        raise SystemExit(
            f"{VERIFIED}: everything passed at {commit[:8]}, {behind} commits ago; at most "
            f"{MOST_BEHIND} may pass: run HPCROWD_CI=all bash .ci/run, and commit {VERIFIED}"
        )
    chosen = House(root).chosen(changed_since(commit, root))
    print(*chosen, sep="\n")
    return (
        f"{len(chosen)} files and pages with slow or endurance tests concern what changed since "
        f"{commit[:8]} ({behind} commits), when everything passed."
    )


if __name__ == "__main__":
    print(main(ROOT, os.environ.get("HPCROWD_CI") == "all"), file=sys.stderr)
