"""Run times of the profiles of a workload of Batsim, where these tell one."""

from __future__ import annotations

from typing import Any

from environment.formats.base import LARGEST_EXACT

#: Types that wait for ``delay`` s: until version 4 of Batsim, and from then on.
DELAYS = ("delay", "DelayProfile")

#: Types that run the profiles of a list ``seq``, ``repeat`` times.
SEQUENCES = ("composed", "SequentialCompositionProfile")

#: Characters of the name of a type that messages show.
LONGEST_TYPE = 40


def run_times(profiles: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return run times and types by profile.

    Parameters
    ----------
    profiles
        By name, as JSON has them.

    Returns
    -------
    times, kinds
        s, -1 where the profile tells no run time; and names of types. A sequence is of the type of
        its part that tells none, if there is one.
    """
    times: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for first in profiles:
        stack = [first]
        entered: set[str] = set()
        while stack:
            name = stack[-1]
            profile = profiles.get(name)
            if name in times:
                stack.pop()
                continue
            parts = _parts(profile)
            missing = [part for part in parts if part not in times]
            if missing and name not in entered:
                entered.add(name)
                stack += dict.fromkeys(missing)
                continue
            stack.pop()
            times[name], kinds[name] = _told(profile, parts, times, kinds)
    return times, kinds


def _parts(profile: Any) -> list[str]:
    """Return the names of the profiles that a sequence is made of."""
    if not isinstance(profile, dict) or profile.get("type") not in SEQUENCES:
        return []
    parts = profile.get("seq")
    return [str(part) for part in parts] if isinstance(parts, list) else []


def _told(
    profile: Any, parts: list[str], times: dict[str, float], kinds: dict[str, str]
) -> tuple[float, str]:
    """Return the run time and the type of a profile, given those of its parts."""
    kind = profile.get("type") if isinstance(profile, dict) else None
    word = kind[:LONGEST_TYPE] if isinstance(kind, str) and kind.isprintable() else "unknown"
    time: Any = -1
    if kind in DELAYS:
        time = profile.get("delay")
    elif kind in SEQUENCES:
        repeat = profile.get("repeat", 1)
        for part in parts:
            if times.get(part, -1) < 0:  # or a sequence within itself
                return -1.0, kinds.get(part, word)
        if type(repeat) in (int, float) and parts:
            time = sum(times[part] for part in parts) * repeat
    if type(time) not in (int, float) or not 0 <= time <= LARGEST_EXACT:
        return -1.0, word
    return float(time), word
