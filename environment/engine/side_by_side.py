"""Chooses what leads clusters side by side: compiled where it can be, else plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.dispatch import Dispatch
from hpcrowd.environment.engine.lock_step import LockStep
from hpcrowd.environment.engine.plain import PlainEngine
from hpcrowd.environment.grid.policies import GridPolicy, Site

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import JobTable
    from hpcrowd.environment.units import UnitTable


def dispatch_of(
    jobs: JobTable,
    units: UnitTable,
    sites: Sequence[Site],
    policy: GridPolicy,
    coallocation: bool = False,
) -> Dispatch:
    """Return the queue of a broker."""
    engines = [site.engine for site in sites]
    if not coallocation and not any(isinstance(engine, PlainEngine) for engine in engines):
        from hpcrowd.environment.engine.compiled_dispatch import (
            CompiledDispatch,
            dispatches_compiled,
        )

        if dispatches_compiled(engines, policy):
            return CompiledDispatch(jobs, units, sites, policy, len(sites))
    return Dispatch(jobs, units, sites, policy, len(sites))


def lock_step(engines: Sequence[Engine], units: UnitTable, dispatch: Dispatch | None) -> LockStep:
    """Return what advances the engines together."""
    if not any(isinstance(engine, PlainEngine) for engine in engines):
        from hpcrowd.environment.engine.compiled_dispatch import CompiledDispatch
        from hpcrowd.environment.engine.compiled_lock_step import CompiledLockStep

        if dispatch is None or isinstance(dispatch, CompiledDispatch):
            return CompiledLockStep(engines, units, dispatch)  # type: ignore[arg-type]
    return LockStep(engines, units, dispatch)
