"""The command line: the command ``hpcrowd NAME`` is the file ``commands/GROUP/NAME.py``.

A hyphen of the name is an underscore there.

The file defines ``command``: a function whose parameters are the arguments and options, or a Typer
application of several commands. Its group is the panel in which the help lists it. Only the file of
the command that runs is imported; for the list of all commands the files are read, but not run. A
new command is one new file.

Exit codes: 0 success; 1 a published figure was not reached, or runs of a sweep failed; 2 the
command or its input is wrong, or its output cannot be written, and a message of one line says why;
129, 130 and 143 ended by SIGHUP, Ctrl-C and SIGTERM; 141 the reader of standard output has gone.

What code that files name a command may load (:mod:`hpcrowd.environment.registry`) follows from
its name and what was typed; one that is not in :data:`RUNS` loads nothing that a file names.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click.exceptions import ClickException, NoSuchOption
from typer.core import TyperCommand, TyperGroup

from hpcrowd.environment.errors import HpcrowdError, elsewhere, harmless, meant_by
from hpcrowd.environment.limits.numbers import raise_floating_errors
from hpcrowd.environment.output.guard import written
from hpcrowd.environment.output.whole import remove_temporary
from hpcrowd.environment.registry import Trust, place_of, trusting
from hpcrowd.scenarios.interrupts import WORDS, leave, watch
from hpcrowd.scenarios.outputs import with_flag, with_force
from hpcrowd.scenarios.terminal import prepare_streams, readable_width, status

if TYPE_CHECKING:
    from typer._click.shell_completion import CompletionItem

#: Where the files of commands are.
FOLDER = Path(__file__).parent / "commands"

#: The order in the help; a command that is not named here comes at the end.
ORDER = (
    "demo", "what-if", "replay", "resample", "populate", "grid", "forecast", "run", "sweep",
    "inspect", "report", "compare", "gantt", "explain", "sessions", "machine",
    "stats", "convert", "clean", "window", "fetch",
    "fit", "generate", "judge", "predict", "validate", "events", "calibrate",
    "behaviours", "policies", "models",
    "reproduce",
)  # fmt: skip

#: Exit code of a command that was ended by Ctrl-C, as in shells.
INTERRUPTED = 130

#: Exit code of a command whose reader has gone, as in ``| head``, as in shells.
BROKEN_PIPE = 141


class CommandFiles(Mapping[str, Any]):
    """The commands by name, in the order of the help; each is imported when it is looked up."""

    def __init__(self) -> None:
        files = {path.stem.replace("_", "-"): path for path in FOLDER.glob("*/[!_]*.py")}
        names = dict.fromkeys((*ORDER, *sorted(files)))
        self._files = {name: files[name] for name in names if name in files}

    def __getitem__(self, name: str) -> Any:
        """Return a command, or the group of several."""
        if name not in self._files:
            raise KeyError(name)
        return _loaded(self._files[name].parent.name, name)

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


@cache
def _loaded(group: str, name: str) -> Any:
    """Return a command of a group of files, or its group of several; built once in a process."""
    module = name.replace("-", "_")
    command = import_module(f"hpcrowd.scenarios.commands.{group}.{module}").command
    holder = typer.Typer(add_completion=False)
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name)
    else:
        holder.command(name)(with_force(with_trust(command, name), name))
    return typer.main.get_group(holder).commands[name]


def help_of(file: ast.Module) -> str:
    """Return the docstring of a file's command; of an application, that of the file."""
    for node in file.body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            return ast.get_docstring(node) or ""
    return ast.get_docstring(file) or ""


@contextmanager
def _harmless_usage() -> Iterator[None]:
    """Shorten what messages about wrong options repeat, and take control characters out."""
    try:
        yield
    except ClickException as error:
        error.message = harmless(error.message)
        if isinstance(error, NoSuchOption) and error.ctx is not None:
            _check_part(error.option_name.lstrip("-").replace("-", "_"))
            known = [name.lstrip("-") for one in error.ctx.command.params for name in one.opts]
            if meant := meant_by(error.option_name, known):
                error.possibilities = [f"--{meant}"]
            elif does := elsewhere(error.option_name, known):
                error.possibilities = []
                error.message += f"; {does}"
        raise


def _check_part(setting: str) -> None:
    """Import the part that adds a setting, which fails if it is not installed."""
    from hpcrowd.scenarios.kinds.base import SETTINGS

    SETTINGS.get(setting)


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

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; say so if its part is not installed."""
        found = super().get_command(ctx, cmd_name)
        if found is None and self.files is CommandFiles and cmd_name in ORDER:
            raise HpcrowdError(_lacking(f"command {cmd_name}"))
        return found

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Read the options of the program; what a message repeats of them is harmless."""
        with _harmless_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, after its options are read."""
        with _harmless_usage():
            return super().invoke(ctx)

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


@cache
def _program() -> Any:
    """Return the program; built once, as a process may run the command line many times."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; an error is printed in one line."""
    before = sys.stdout, sys.stderr
    written().clear()
    status.begin(f"hpcrowd {' '.join(sys.argv[1:2])}")
    raise_floating_errors()
    try:
        missing = prepare_streams()
        with readable_width():
            try:
                if missing:
                    raise HpcrowdError(f"{missing}: is closed; lead it to a file or {os.devnull}")
                line, code = _outcome()
            except KeyboardInterrupt:
                line, code = interrupted(), watch.code or INTERRUPTED
            except HpcrowdError as error:
                line, code = str(error), 2
            except Exception:
                if not watch.code:
                    raise
                line, code = "", 1
            if watch.code and code not in (0, watch.code, BROKEN_PIPE):
                # Compiled code of libraries turns an interruption into an error of another kind.
                line, code = interrupted(), watch.code
            line = f"hpcrowd: {' '.join(harmless(line).split())}" if line else ""
            status.end()
            if code in WORDS and watch.code:
                leave(code, line)
            remove_temporary()
        if line:
            print(line, file=sys.stderr)
        sys.exit(code)
    finally:
        status.end()
        sys.stdout, sys.stderr = before


def _outcome() -> tuple[str, int]:
    """Run the command, and return the line to print at the end, if any, and the exit code."""
    line, code = "", 0
    try:
        try:
            with trusting(Trust()):
                _program()(standalone_mode=True)
        finally:
            output = sys.stdout
            if output is not None:
                output.flush()
    except HpcrowdError as error:
        line, code = str(error), getattr(error, "exit_code", 2)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("hpcrowd."):
            raise
        line, code = _lacking(str(error.name)), 2
    except SystemExit as stop:
        if isinstance(stop.code, str):
            line, code = stop.code, 2
        else:
            code = int(stop.code or 0)
        if isinstance(stop.__context__, BrokenPipeError):  # which Typer and Rich make to 1
            code = BROKEN_PIPE
        elif code == INTERRUPTED:
            line = interrupted()
    except KeyboardInterrupt:
        line, code = interrupted(), INTERRUPTED
    except MemoryError as error:
        cure = "give smaller numbers, or a part of the trace"
        line, code = f"out of memory{_reason(error)}; {cure}", 2
    except (ArithmeticError, RuntimeWarning) as error:
        # What no check of a setting or of a file has refused: a division by zero, an overflow.
        line = "a number in the input is too large or too small to compute with"
        line, code = line + _reason(error), 2
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError as error:
        where = "standard output" if error.filename is None else error.filename
        how = "cannot be written: " if error.filename is None else ""
        line, code = f"{where}: {how}{error.strerror or error}", 2
        _drop_output()
    if code == BROKEN_PIPE:
        # The reader of our output has gone, as in "| head": not our problem.
        _drop_output()
    return line, (watch.code or INTERRUPTED) if code == INTERRUPTED else code


def interrupted() -> str:
    """Return what to say after an interrupt: what is written completely, if anything."""
    files = list(dict.fromkeys(map(str, written())))
    word = WORDS[watch.code or INTERRUPTED]
    if not files:
        return f"{word}; nothing was written"
    return f"{word}; written before that, and complete: {', '.join(files)}"


def _drop_output() -> None:
    """Lead standard output to the null device, so that the rest of it is not an error again."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def _lacking(what: str) -> str:
    return f"{what}: this installation lacks that part of hpcrowd; install all of it again"


def _reason(error: Exception | Warning) -> str:
    return f" ({error})" if str(error) else ""


# ---- the code that files name -----------------------------------------------------------------

#: Commands that simulate what files describe: they load code from the folders of these files.
RUNS = (
    "replay", "what-if", "resample", "populate", "grid", "forecast", "run", "sweep", "calibrate",
    "validate", "events",
)  # fmt: skip

#: Commands with ``--trust``.
ASKS = (*RUNS, "inspect")

#: Options with which a command runs nothing.
LOOKS = ("show", "status", "methods")

#: Characters between the names in a text such as ``scheduler=FILE.py:CLASS`` or ``a.toml,b.toml``.
BETWEEN = re.compile(r"[=,\s]")

Agreed = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load all code that the files name (FILE.py:NAME), wherever it is; it can do what "
        "you can.",
    ),
]


def with_trust(command: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Return a command during which no more code is loaded than its files may bring along.

    Those of :data:`ASKS` have the option ``--trust``.
    """

    @wraps(command)
    def run(*, trust: bool = False, **given: Any) -> Any:
        with trusting(Trust(everything=True) if trust else _trust(given, runs=name in RUNS)):
            return command(**given)

    return with_flag(run, command, "trust", Agreed) if name in ASKS else run


def _trust(given: dict[str, Any], *, runs: bool) -> Trust:
    """Return what is trusted because it was typed, or is next to a file that is run."""
    if any(given.get(option) for option in LOOKS):
        return Trust(looking=True)
    modules: list[str] = []
    folders = [Path(given["path"]).parent.resolve()] if runs and "path" in given else []
    for part in _parts(given):
        place = place_of(part)
        if place is not None and place.file is None:
            modules.append(place.module.partition(".")[0])
        elif place is not None and place.file is not None:
            folders.append(place.file.resolve().parent)
        elif runs and part.endswith(".toml"):
            folders.append(Path(part).parent.resolve())
    return Trust(folders=tuple(folders), modules=tuple(modules))


def _parts(value: Any) -> Iterator[str]:
    """Yield the texts and paths in the arguments of a command, and the parts of texts."""
    if isinstance(value, str | Path):
        yield from dict.fromkeys((str(value), *BETWEEN.split(str(value))))
    elif isinstance(value, dict):
        yield from _parts(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)
