"""A Gymnasium environment for schedulers that learn, on users who react; with the extra ``gym``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scenarios.learning import Observation as Observation
    from .scenarios.learning import SchedulingEnv as SchedulingEnv
    from .scenarios.learning import Step as Step
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
