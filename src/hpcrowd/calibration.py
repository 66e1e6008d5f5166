"""Calibrated and validated models of users."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.calibration.posterior import Posterior as Posterior
    from .analysis.calibration.posterior import read_posterior as read_posterior
    from .analysis.validation.models import UserModel as UserModel
    from .analysis.validation.validation import Validation as Validation
    from .scenarios.calibration.calibrate import Calibration as Calibration
    from .scenarios.calibration.calibrate import write_posterior as write_posterior
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
