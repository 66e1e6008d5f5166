"""The platform: a machine as text, and what changes during a run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.machine.files.toml_text import machine_toml as machine_toml
    from .environment.platform.changes import Failures as Failures
    from .environment.platform.changes import Maintenance as Maintenance
    from .environment.platform.changes import NodesDown as NodesDown
    from .environment.platform.changes import Resize as Resize
    from .environment.platform.changes import SpeedChange as SpeedChange
    from .environment.platform.changes import SwitchPolicy as SwitchPolicy
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
