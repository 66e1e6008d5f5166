"""What reproductions of published studies share: figures to reach, and statements of the text.

A study holds what was simulated and says what of it has to be reached. What a paper says without a
number becomes a :class:`Rule`; a rule checked somewhere gives a :class:`Claim`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

#: What was measured by name, the same for people, and whether the rule is kept, None when that
#: stays open.
Finding = tuple[dict[str, float], str, bool | None]


class Judged(Protocol):
    """Something that holds or does not."""

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None when nothing was asked of it, or it stays open."""


class Study[Need: Judged](ABC):
    """Our simulations beside the published figures."""

    @property
    @abstractmethod
    def requirements(self) -> Sequence[Need]:
        """What has to be reached."""

    @property
    def failures(self) -> list[Need]:
        """What was not reached."""
        return [one for one in self.requirements if not one.holds]

    @property
    def reached(self) -> bool:
        """Whether every required figure was reached."""
        return not self.failures

    @property
    def score(self) -> str:
        """How many of how many were reached, such as ``3 of 4``."""
        required = len(self.requirements)
        return f"{required - len(self.failures)} of {required}"


@dataclass(frozen=True)
class Requirement:
    """A figure that has to be reached.

    Attributes
    ----------
    setting
        The log or the trace; empty where a study has but one.
    what
        Which figure.
    ours, required
        For people.
    holds
        Whether it is reached.
    """

    setting: str
    what: str
    ours: str
    required: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """A statement of the text in one setting.

    Attributes
    ----------
    name, section, what
        Which statement, where, and in words with the rule.
    setting
        The log, the load or the kind of workload it was checked on.
    numbers
        What was measured, by name.
    text
        The same for people.
    holds
        Whether the rule is kept; None when that stays open.
    """

    name: str
    section: str
    what: str
    setting: str
    numbers: dict[str, float]
    text: str
    holds: bool | None


@dataclass(frozen=True)
class Rule:
    """How a statement is checked; each study adds by what.

    Attributes
    ----------
    name, section, what
        As in :class:`Claim`.
    """

    name: str
    section: str
    what: str

    def claim(self, setting: str, found: Finding) -> Claim:
        """Return the statement with what was found in a setting."""
        numbers, text, holds = found
        holds = None if holds is None else bool(holds)  # comparisons of arrays give numpy's
        return Claim(self.name, self.section, self.what, setting, numbers, text, holds)


def as_data(
    ones: Iterable[Requirement] | Iterable[Claim], setting: str | None
) -> list[dict[str, Any]]:
    """Return requirements or claims as plain data, fit for JSON.

    Parameters
    ----------
    ones
        What to return.
    setting
        What the study calls its settings, such as ``log``; None leaves them out.
    """
    names = {} if setting is None else {"setting": setting}
    return [
        {
            names.get(name, name): value
            for name, value in asdict(one).items()
            if name != "setting" or names
        }
        for one in ones
    ]
