"""Errors that name what is wrong, the value and the cure; all are :class:`hpcrowd.HpcrowdError`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.errors import ArchiveError as ArchiveError
    from .environment.errors import MachineError as MachineError
    from .environment.errors import ModelFileError as ModelFileError
    from .environment.errors import ModelFitError as ModelFitError
    from .environment.errors import ParseError as ParseError
    from .environment.errors import PredictorError as PredictorError
    from .environment.errors import QuantityError as QuantityError
    from .environment.errors import ResultsError as ResultsError
    from .environment.errors import SchedulerError as SchedulerError
    from .environment.errors import SignalError as SignalError
    from .environment.errors import SimulationError as SimulationError
    from .environment.errors import TraceError as TraceError
    from .environment.errors import UnavailableError as UnavailableError
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
