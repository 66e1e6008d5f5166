"""The command line: the command ``hpcrowd NAME`` is the file ``commands/GROUP/NAME.py``.

The file defines ``command``: a function whose parameters are the arguments and options, or a Typer
application of several commands. Its group is the panel in which the help lists it. Only the file of
the command that runs is imported; for the list of all commands the files are read, but not run. A
new command is one new file.

Exit codes: 0 success; 1 a published figure was not reached, or runs of a sweep failed; 2 the
command or its input is wrong, and a message of one line says why; 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.interrupts import WORDS, leave, watch
from hpcrowd.scenarios.status import status

if TYPE_CHECKING:
    from typer._click.shell_completion import CompletionItem

#: Where the files of commands are.
FOLDER = Path(__file__).parent / "commands"

#: The order in the help; a command that is not named here comes at the end.
ORDER = (
    "demo", "replay", "resample", "populate", "grid", "run", "sweep",
    "inspect", "report", "compare", "explain", "sessions",
    "stats", "convert", "clean", "window", "fetch",
    "fit", "generate", "judge", "predict", "validate",
    "behaviours", "policies", "models",
    "reproduce",
)  # fmt: skip

#: Exit code of a command that was ended by Ctrl-C, as in shells.
INTERRUPTED = 130


class CommandFiles(Mapping[str, Any]):
    """The commands by name, in the order of the help; each is imported when it is looked up."""

    def __init__(self) -> None:
        files = {path.stem: path for path in FOLDER.glob("*/[!_]*.py")}
        names = dict.fromkeys((*ORDER, *sorted(files)))
        self._files = {name: files[name] for name in names if name in files}

    def __getitem__(self, name: str) -> Any:
        """Return a command, or the group of several."""
        if name not in self._files:
            raise KeyError(name)
        group = self._files[name].parent.name
        command = import_module(f"hpcrowd.scenarios.commands.{group}.{name}").command
        holder = typer.Typer(add_completion=False)
        if isinstance(command, typer.Typer):
            holder.add_typer(command, name=name)
        else:
            holder.command(name)(command)
        return typer.main.get_group(holder).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def listed(self) -> dict[str, Any]:
        """Return each command with its help, but without options; nothing is imported."""
        return {
            name: TyperCommand(
                name,
                help=help_of(ast.parse(path.read_text(encoding="utf-8"))),
                rich_help_panel=path.parent.name.capitalize(),
            )
            for name, path in self._files.items()
        }


def help_of(file: ast.Module) -> str:
    """Return the docstring of a file's command; of an application, that of the file."""
    for node in file.body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            return ast.get_docstring(node) or ""
    return ast.get_docstring(file) or ""


class LazyGroup(TyperGroup):
    """A group of commands, here of all, which imports none of them for its help."""

    #: The commands by name; ``listed()`` returns them without their options.
    files: type[Any] = CommandFiles

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": self.files()})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the program."""
        super(LazyGroup, self._unloaded()).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin with ``incomplete``."""
        return super(LazyGroup, self._unloaded()).shell_complete(ctx, incomplete)

    def _unloaded(self) -> LazyGroup:
        shown = copy(self)
        shown.commands = self.files().listed()
        return shown


app = typer.Typer(
    name="hpcrowd",
    cls=LazyGroup,
    help="Simulate the people who use a batch-scheduled cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from hpcrowd import __version__

        typer.echo(f"hpcrowd {__version__}")
        raise typer.Exit


@app.callback()
def _hpcrowd(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options of the program itself."""


def main() -> None:
    """Run the command line; an error is printed in one line."""
    status.begin(f"hpcrowd {' '.join(sys.argv[1:2])}")
    try:
        app(standalone_mode=True)
    except HpcrowdError as error:
        code = getattr(error, "exit_code", 2)
        if code == INTERRUPTED:
            _interrupted(str(error))
        _fail(f"hpcrowd: {error}", code)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _interrupted()
        raise
    except KeyboardInterrupt:
        _interrupted()
    except BrokenPipeError:
        # The reader of our output has gone, as in "| head": not our problem.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    finally:
        status.end()


def _interrupted(outcome: str = "") -> None:
    code = watch.code or INTERRUPTED
    line = f"hpcrowd: {outcome or f'{WORDS[code]}; nothing was written'}"
    if not watch.began:
        _fail(line, code)
    status.end()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    leave(code, " ".join(line.split()))


def _fail(line: str, code: int) -> None:
    status.end()
    print(" ".join(line.split()), file=sys.stderr)
    sys.exit(code)
