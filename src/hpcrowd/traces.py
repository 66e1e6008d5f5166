"""Traces in detail: headers, the archive, cleaning, windows and the times that users request."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.header import Header as Header
    from .environment.traces.archive.logs import ArchiveLog as ArchiveLog
    from .environment.traces.archive.logs import archive_logs as archive_logs
    from .environment.traces.archive.logs import cache_folder as cache_folder
    from .environment.traces.cleaning import Cleaned as Cleaned
    from .environment.traces.cleaning import CleaningRules as CleaningRules
    from .environment.traces.cleaning import Flurry as Flurry
    from .environment.traces.cleaning import FlurryRule as FlurryRule
    from .environment.traces.formats.common.names import anonymised as anonymised
    from .environment.traces.formats.registry import trace_path as trace_path
    from .environment.traces.request_model import RequestModel as RequestModel
    from .environment.traces.trace import Conversion as Conversion
    from .environment.traces.window import Windowed as Windowed
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
