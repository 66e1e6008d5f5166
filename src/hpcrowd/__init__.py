"""Agent-based simulation of the people who use batch-scheduled clusters.

``import hpcrowd as hc`` gives every public name, each loaded when it is first used::

    run = hc.replay(hc.read_trace("log.swf.gz"), users="think-time", processors="2x")

The names are declared in the stubs (``__init__.pyi``) of the four floors, and only there.
"""

from __future__ import annotations

from typing import Any

from hpcrowd import agents, analysis, environment, scenarios

__version__ = "0.1.0"

#: The floor that each public name is on.
_FLOOR_OF = {
    name: floor for floor in (environment, agents, analysis, scenarios) for name in floor.__all__
}

__all__ = ["__version__", "agents", "analysis", "environment", "scenarios", *sorted(_FLOOR_OF)]


def __getattr__(name: str) -> Any:
    if name not in _FLOOR_OF:
        raise AttributeError(f"module 'hpcrowd' has no attribute {name!r}")
    return getattr(_FLOOR_OF[name], name)


def __dir__() -> list[str]:
    return __all__
