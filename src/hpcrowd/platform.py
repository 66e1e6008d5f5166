"""The platform: a machine in use or as text, and what changes during a run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.machine.files.toml_text import machine_toml as machine_toml
    from .environment.platform.changes import Failures as Failures
    from .environment.platform.changes import Maintenance as Maintenance
    from .environment.platform.changes import NodesDown as NodesDown
    from .environment.platform.changes import Resize as Resize
    from .environment.platform.changes import SpeedChange as SpeedChange
    from .environment.platform.changes import SwitchPolicy as SwitchPolicy
    from .environment.platform.part import Platform as Platform
    from .environment.schedulers.on_nodes.in_use import MachineInUse as MachineInUse
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
