"""What an engine asks of the changes that happen to it during a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from hpcrowd.environment.schedulers.base import Scheduler


class Changes(Protocol):
    """Changes an engine during the run, see ``platform.timeline.Timeline``."""

    next_at: int
    quiet: bool
    history: list[tuple[int, int, int]]
    levels: list[tuple[int, float]]
    expecting: Callable[[], bool]
    separate: Callable[[int, str, str], bool]

    @property
    def slows(self) -> bool:
        """Whether running jobs may be slowed."""

    @property
    def reviews(self) -> Looks:
        """The checks of an adaptive scheduler."""

    @property
    def step_at(self) -> int:
        """Time of the next change that is not a check of an adaptive scheduler."""

    @property
    def up(self) -> int:
        """Processors that are up, whether a power cap lets them be busy or not."""

    @property
    def planned(self) -> bool:
        """Whether changes are to come besides random failures and checks."""

    def note_stop(self, row: int, cause: str, fate: str) -> None:
        """Note that a running job is stopped now."""

    def apply(self, now: int) -> list[int]:
        """Apply the changes at ``now``; return the rows of the jobs that end because of them."""

    def catch_up(self, now: int) -> None:
        """Apply changes before ``now`` while nothing ran, waited or was to arrive."""

    def begin_at(self, now: int) -> None:
        """Begin at a second with what changed before, and without its account."""

    def account(self, now: int) -> dict[str, Any]:
        """Return the effects of the changes until ``now``."""


class Looks(Protocol):
    """The looks of an adaptive scheduler, see ``platform.timeline.Reviews``."""

    switches: int

    def begin_at(self, now: int) -> Scheduler | None:
        """Return the policy that the last look before now chose, None for that in use."""
