"""The options of ``sbatch`` in a submit line that the accounting keeps nowhere else."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache

#: Options with an argument, in their short and long forms.
OPTIONS = {
    "-d": "dependency", "--dependency": "dependency", "-b": "begin", "--begin": "begin",
    "-a": "array", "--array": "array",
}  # fmt: skip

#: Options without an argument; the first word that is neither an option nor its argument is the
#: script. (Man page of ``sbatch``.)
ALONE = frozenset((
    "--exclusive", "--parsable", "-H", "--hold", "--requeue", "--no-requeue", "-Q", "--quiet", "-W",
    "--wait", "-v", "--verbose", "-k", "--no-kill", "-s", "--oversubscribe", "-O", "--overcommit",
    "--contiguous", "--spread-job", "--use-min-nodes", "--get-user-env", "--ignore-pbs", "--reboot",
    "--test-only", "-I", "--immediate", "--nice",
))  # fmt: skip

#: Seconds of the units of ``--begin=now+COUNT UNIT``.
UNITS = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}

_NOW = re.compile(r"now(?:\+(\d{1,9})(second|minute|hour|day|week|)s?)?")
_DEPENDENCY = re.compile(r"(?:(?:after\w*:[\d_+:?,*%]+|singleton)[,?]?)+")
_THROTTLE = re.compile(r"%(\d{1,9})$")


@dataclass(frozen=True)
class Asked:
    """What a submit line asks for.

    Attributes
    ----------
    dependency
        As in ``afterok:17``; empty for none.
    begin
        s after the submission; 0 if it is not relative to it, or not given.
    throttle
        Most tasks of an array at a time; 0 for no limit.
    exclusive
        Whether whole nodes.
    """

    dependency: str = ""
    begin: int = 0
    throttle: int = 0
    exclusive: bool = False


@lru_cache(maxsize=4096)
def asked_in(line: str) -> Asked:
    """Return what the options before the script ask for; nothing if the line cannot be split."""
    try:
        words = shlex.split(line, posix=True)
    except ValueError:
        words = line.split()
    found: dict[str, str] = {}
    exclusive = False
    place = 1
    while place < len(words) and words[place].startswith("-"):
        name, equals, value = words[place].partition("=")
        place += 1
        short = not name.startswith("--")
        if short and len(name) > 2:
            name, value, equals = name[:2], words[place - 1][2:], "="  # -dafterok:17
        if name == "--exclusive":
            exclusive = True
        elif not equals and name not in ALONE:
            value = words[place] if place < len(words) else ""
            place += 1
        if name in OPTIONS:
            found[OPTIONS[name]] = value
    dependency = found.get("dependency", "")
    begin = _NOW.fullmatch(found.get("begin", ""))
    throttle = _THROTTLE.search(found.get("array", ""))
    return Asked(
        dependency if _DEPENDENCY.fullmatch(dependency) else "",
        int(begin[1] or 0) * UNITS[begin[2] or ""] if begin else 0,
        int(throttle[1]) if throttle else 0,
        exclusive,
    )
