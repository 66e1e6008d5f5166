"""The command ``hpcrowd policies``: list the scheduling policies and their options.

The descriptions come from the docstrings of the policies, as in the tables of the documentation.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.schedulers.base import Scheduler, options_of
from hpcrowd.environment.schedulers.names import SCHEDULERS
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output


@dataclass(frozen=True)
class Option:
    """An option of a policy."""

    name: str  #: its name, as in ``name:option=value``
    default: str  #: as text; empty if it has none
    meaning: str  #: its description


@dataclass(frozen=True)
class Policy:
    """A policy with a name."""

    name: str  #: as on the command line
    does: str  #: what it does, in a few words
    options: list[Option]  #: its options


def policies() -> list[Policy]:
    """Return every policy with its options."""
    return [
        Policy(name, first_sentence(policy.__doc__ or ""), options(policy))
        for name, policy in SCHEDULERS.items()
    ]


def options(policy: type[Scheduler]) -> list[Option]:
    """Return the options of a policy, from its docstring or that of its base class."""
    meanings: dict[str, str] = {}
    for base in reversed(policy.__mro__):
        meanings |= _parameters(inspect.getdoc(base) or "" if "__doc__" in vars(base) else "")
    return [
        Option(option.replace("_", "-"), _text(default), meanings[option])
        for option, default in options_of(policy).items()
    ]


def first_sentence(doc: str) -> str:
    """Return the first paragraph of a docstring in one line, its marks made plain backticks."""
    line = (inspect.cleandoc(doc) + "\n").split("\n\n")[0].replace("\n", " ").strip()
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", line).replace("``", "`")


def _parameters(doc: str) -> dict[str, str]:
    """Return the parameters that a docstring in numpy style describes."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", doc, re.M | re.S)
    if section is None:
        return {}
    found: dict[str, str] = {}
    for each in re.finditer(r"^(\w[\w, ]*)\n((?:^    .*\n?|^\n)+)", section[1] + "\n", re.M):
        text = " ".join(each[2].split())
        found |= {name.strip(): first_sentence(text) for name in each[1].split(",")}
    return found


def _text(default: object) -> str:
    if default is None:
        return ""
    return ("yes" if default else "no") if isinstance(default, bool) else str(default)


def command(
    name: Annotated[
        str | None, typer.Argument(help="Name of a policy, to list its options.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the scheduling policies, or the options of one."""
    found = [policy for policy in policies() if name in (None, policy.name)]
    if not found:
        raise QuantityError(f"policy {name!r}: {not_one_of(name, SCHEDULERS)}")
    if as_json:
        wire: dict[str, Any] = {"policies": [asdict(policy) for policy in found]}
        print_json(wire)
        return
    console = standard_output()
    if name is None:
        named = [(policy.name, policy.does) for policy in found]
        console.print(plain_table("policy", "what it does", rows=named, words=2, whole=1))
        console.print("\n`hpcrowd policies NAME` lists the options of NAME.")
        return
    policy = found[0]
    console.print(f"{policy.name}: {policy.does}")
    if not policy.options:
        console.print("It has no options.")
        return
    rows = [(one.name, one.default or "not set", one.meaning) for one in policy.options]
    console.print(plain_table("option", "default", "meaning", rows=rows, words=3, whole=2))
    console.print(f"\nSuch as --scheduler {policy.name}:OPTION=VALUE,...")
