"""Mutated files of every kind that hpcrowd reads, and the commands that read them.

Run as a program, it is the worker of ``test_mutated_files``: it makes good files, mutates them,
gives each to a command in this process, and prints what went wrong.
"""

import contextlib
import copy
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hpcrowd.environment.traces.formats.registry import FORMATS

from tests.attacks.mutation_bases import (
    CORPORA,
    FILES,
    MAKERS,
    NUMBERS,
    POPULATION,
    TRACE_COMMANDS,
    Corpus,
)
from tests.environment.traces.formats.format_cases import MAPPING, options, sample
from tests.environment.traces.formats.test_fuzz import broken

#: s that a command may take: 10 beyond the slowest good one, on a busy machine.
LONGEST = 20

#: Bytes that a command may take beyond what the process has after the good files.
MEMORY = 3 * 2**30

#: A text that is found again in messages, and the most characters of it that they may have.
MARK, MOST_MARKS = "\u00a7", 200

#: Values that are put where others were.
NASTY: tuple[Any, ...] = (
    float("nan"), float("inf"), float("-inf"), -1, 0, 1, 2, -0.0, 0.5, 1e-300, 1e300, 1e30, 1e18,
    2**31, 2**31 - 1, 2**53, 2**63 - 1, 2**63, 2**64, 10**9, 10**12, 10**30, -(10**9), -(2**63),
    "", " ", "x", "nan", "inf", "1e9", "-1", "0", "1000000000", "1e400x", "999999999999999x",
    "0.000000000001x", "2x", "99999999999w", "1000000w", "0s", "1s", "archive:", "archive:KTH", "/",
    "/dev/zero", "/dev/null", ".", "mutant.toml", "missing.swf", "\x1b[31m", "\0", "a\nb", "\ud800",
    True, False, None, [], {}, [[]], [{}], {"a": 1}, [1, 2, 3], ["x"] * 3, [0] * 2000, MARK * 5000,
    [MARK] * 2000, MARK + " " + f"{MARK} " * 3000, {MARK * 300: 1}, "9999-12-31", "0001-01-01",
    "1996-10-14 16:00", "easy", "recorded", "adaptive", "rigid", "mugm", "none", "poisson",
)  # fmt: skip

#: Numbers, or what is given as one.
EXTREMES = (
    "nan", "inf", "-inf", "-1", "0", "1e9", "1e30", "1e-300", "1e300", "2147483648", "1000000000",
    "9" * 10, "9" * 12, "9" * 15, "9" * 19, "9" * 40, "9" * 400, "0.000000001", "1e400", "", " ",
    "\u0663", "-9223372036854775808", "9223372036854775807", "4294967296", "100000", "1_000",
    "0x10", "\x1b[31mred", MARK * 3000, f"{MARK} " * 2000,
)  # fmt: skip


def build(folder: Path) -> None:
    """Make the good files in a folder, and go there."""
    os.chdir(folder)
    for name, text in FILES.items():
        Path(name).write_text(text)
    told = options(folder)
    Path("mapping.toml").write_text(MAPPING)
    Path("signalled.toml").write_text(POPULATION.replace("signal.csv", "mutant.csv"))
    for name in FORMATS:
        Path(f"trace.{name}").write_bytes(sample(name, told))
    for line in MAKERS:
        code, _, err, error = called(line.split())
        assert (0, None) == (code, error), (line, err)


def called(arguments: list[str]) -> tuple[Any, str, str, BaseException | None]:
    """Call the command line: exit code, output, errors, and any other exception."""
    from hpcrowd.scenarios.cli import main

    sys.argv = ["hpcrowd", *arguments]
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8")
    code, error = None, None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as caught:  # noqa: BLE001
            error = caught
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return code, texts[0], texts[1], error


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value below another."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*way, key)
            yield from places(below, (*way, key))


def mutated_tree(tree: Any, draw: random.Random) -> Any:
    """Return a copy with one or two values replaced, removed, renamed, moved or repeated."""
    tree = json.loads(json.dumps(tree, default=str))
    for _ in range(draw.choice((1, 1, 1, 2))):
        ways = list(places(tree))
        if not ways:
            return tree
        *way, last = draw.choice(ways)
        place = tree
        for part in way:
            place = place[part]
        kind = draw.randrange(10)
        if kind < 6:
            place[last] = copy.deepcopy(draw.choice(NASTY))  # it may be changed next
        elif kind == 6:
            del place[last]
        elif kind == 7 and isinstance(place, dict):
            place[draw.choice(("", "x", MARK * 300, "seed", "processors"))] = place.pop(last)
        elif kind == 8:
            place[last] = [place[last]]
        else:  # other values of the file, or many of the same
            other: Any = tree
            for part in draw.choice(ways)[: draw.choice((1, 2, 9))]:
                other = other[part]
            other = json.loads(json.dumps(other))
            place[last] = draw.choice((other, [other] * 50))
    return tree


def toml_of(value: Any) -> str:
    """Return a value as inline TOML; text as it is even where TOML forbids it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_of(key)} = {toml_of(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def key_of(key: Any) -> str:
    """Return a key of TOML."""
    return json.dumps(str(key))


def mutated_text(data: bytes, draw: random.Random) -> bytes:
    """Return a file after a mishap that leaves or destroys its form."""
    lines = data.split(b"\n")
    match draw.randrange(9):
        case 0:
            return data[: draw.randrange(len(data) + 1)]
        case 1:
            encoding = draw.choice(("utf-16", "utf-32", "utf-8-sig", "cp037"))
            return data.decode("utf-8", "replace").encode(encoding, "replace")
        case 2:
            place = draw.randrange(len(data) + 1)
            what = draw.choice((b"\0", b"\xff", b"\x1b]0;t\x07", b"[" * 3000))
            return data[:place] + what + data[place:]
        case 3:
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
        case 4:
            draw.shuffle(lines)
        case 5:
            one = draw.randrange(len(lines))
            lines = lines[one:] + lines[:one]
        case 6:
            whole = (b"", b"\n" * 300_000, b" ", b"null", b"[]", b"{}", b"\0" * 5000, b"1e999")
            return draw.choice(whole)
        case _:
            return broken(data, draw)
    return b"\n".join(lines)


def mutant(name: str, data: bytes, draw: random.Random) -> bytes:
    """Return a mutated file, by what its name says it is."""
    suffix = Path(name).suffix
    if suffix == ".parquet" and draw.random() < 0.7:
        return mutated_parquet(data, draw)
    if suffix in (".toml", ".json", ".batsim") and draw.random() < 0.75:
        if suffix == ".toml":
            tree = mutated_tree(tomllib.loads(data.decode()), draw)
            text = "".join(f"{key_of(key)} = {toml_of(value)}\n" for key, value in tree.items())
        else:
            text = json.dumps(mutated_tree(json.loads(data), draw))
        return text.encode("utf-8", "surrogatepass")
    if suffix not in (".toml", ".json") and draw.random() < 0.6:
        return mutated_words(data, draw)
    return mutated_text(data, draw)


def mutated_words(data: bytes, draw: random.Random) -> bytes:
    """Return a file with some of its numbers replaced by extreme ones."""
    import re

    numbers = list(re.finditer(rb"\d+(\.\d+)?", data))
    if not numbers:
        return mutated_text(data, draw)
    for found in sorted(draw.sample(numbers, min(len(numbers), draw.choice((1, 1, 2, 5)))),
                        key=lambda one: -one.start()):  # fmt: skip
        new = draw.choice((*EXTREMES, str(2**53), str(2**53 - 1), str(2**31), str(10**11), "86400",
                           str(10**14)))  # fmt: skip
        data = data[: found.start()] + new.encode() + data[found.end() :]
    return data


def mutated_parquet(data: bytes, draw: random.Random) -> bytes:
    """Return a table with other numbers, types or columns."""
    table = pq.read_table(io.BytesIO(data))
    name = draw.choice(table.column_names)
    place = table.column_names.index(name)
    column, rows = table.column(name), len(table)
    match draw.randrange(6):
        case 0:
            table = table.drop_columns([name])
        case 1:
            new = draw.choice((None, MARK * 300, 1e30, 0.5, float("nan")))
            table = table.set_column(place, name, pa.array([new] * rows))
        case 2:
            table = table.set_column(place, name, pa.nulls(rows, column.type))
        case 3:
            values = column.to_pylist()
            value = draw.choice((2**62, 2**53, -(2**62), -1, 0, 2**31, 10**12))
            with contextlib.suppress(pa.ArrowException, IndexError):
                values[draw.randrange(max(1, rows))] = value
                table = table.set_column(place, name, pa.array(values, pa.int64()))
        case 4:
            table = table.rename_columns(list(reversed(table.column_names)))
        case _:
            table = draw.choice((table.slice(0, 0), pa.concat_tables([table, table])))
    into = io.BytesIO()
    pq.write_table(table, into)
    return into.getvalue()


class Hangs(BaseException):
    """A command takes too long."""


def alarm(*_: Any) -> None:
    """End a command."""
    raise Hangs


def limit(more: int) -> None:
    """Bound what this process may take beyond what it has, bytes, and let alarms end commands."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, alarm)


def case_of(corpus: Corpus, draw: random.Random) -> tuple[list[str], bytes]:
    """Write a mutated file, and return the command that reads it, and the file."""
    if not corpus.files:
        text = draw.choice(EXTREMES)
        return [word.replace("@", text) for word in draw.choice(NUMBERS).split()], text.encode()
    name = draw.choice(corpus.files)
    data = mutant(name, Path(name).read_bytes(), draw)
    if "/" in name:
        shutil.copytree(Path(name).parent, "mutant")
        target = Path("mutant") / Path(name).name
    else:
        target = Path("mutant" + Path(name).suffix)
    target.write_bytes(data)
    line = draw.choice(corpus.commands)
    return [word.replace("@", str(target)) for word in line.split()], data


def verdict(code: Any, err: str, error: BaseException | None) -> str:
    """Return what is wrong with the end of a command; empty if nothing is."""
    if error is not None:
        return "".join(traceback.format_exception(error)[-6:])
    if code not in (0, 1, 2):
        return f"exit code {code}"
    lines = err.strip().splitlines()
    if code and not lines:
        return "fails without a message"
    if err.count(MARK) > MOST_MARKS:
        return f"echoes {err.count(MARK)} characters of the input: {err[:300]}"
    if any(not one.isprintable() for one in err.replace("\n", "")):
        return f"control characters: {err[:300]!r}"
    if "Traceback" in err:
        return err[-600:]
    if code == 2 and "Usage:" not in err and not lines[-1].startswith("hpcrowd: "):
        return f"no line of hpcrowd: {err[-300:]!r}"
    if half := [path.name for path in Path().rglob("*.tmp")]:
        return f"left {half}"
    written = [path.name for path in Path().glob("out*")]
    if code == 2 and written:
        return f"wrote {written} in spite of an error: {err[-300:]}"
    return ""


def clear() -> None:
    """Remove what a case left."""
    for path in (*Path().glob("out*"), *Path().glob("mutant*"), *Path().rglob("*.tmp")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def attack(name: str, part: int, count: int, report: Callable[[dict[str, Any]], None]) -> None:
    """Attack with mutated files of a corpus, and report each failure."""
    for command in TRACE_COMMANDS:  # what is imported once is not counted
        called(command.replace("@", "log.swf").split())
    for file in CORPORA[name].files:
        for command in CORPORA[name].commands:
            called(command.replace("@", file).split())
    clear()
    limit(MEMORY)
    for number in range(count):
        draw = random.Random(f"{name} {part} {number}")
        arguments, data = case_of(CORPORA[name], draw)
        signal.alarm(LONGEST)
        try:
            code, _, err, error = called(arguments)
        except Hangs as hang:
            code, err, error = None, "", hang
        finally:
            signal.alarm(0)
        if wrong := verdict(code, err, error):
            text = data[:3000].decode("utf-8", "backslashreplace")
            command = " ".join(arguments)[:300]
            report({"case": f"{name} {part} {number}", "command": command, "wrong": wrong,
                    "data": text})  # fmt: skip
        clear()


def main() -> None:
    """Run as a worker: folder, corpus, part, number of cases."""
    folder, name, part, count = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    build(Path(folder))
    stdout = sys.stdout
    attack(name, int(part), int(count), lambda one: print(json.dumps(one), file=stdout, flush=True))
    print(json.dumps({"done": name}), file=stdout)


if __name__ == "__main__":
    main()
