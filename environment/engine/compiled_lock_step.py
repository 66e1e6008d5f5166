"""Compiled clusters side by side: their arrays stand together, so that one loop runs them all.

What plain Python does in :mod:`hpcrowd.environment.engine.lock_step` happens in
:mod:`kernel.grid_loop`; it comes back for what only Python can do: a policy outside the
loop has its pass, a platform changes, an array is to grow. Each engine keeps its own slices of the
arrays, so that all that may be asked of an engine alone still works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

import numpy as np

from hpcrowd.environment.engine.base import Engine
from hpcrowd.environment.engine.compiled import CompiledEngine
from hpcrowd.environment.engine.compiled_dispatch import BrokerArrays, CompiledDispatch
from hpcrowd.environment.engine.kernel import grid_loop as G
from hpcrowd.environment.engine.kernel import places as S
from hpcrowd.environment.engine.lock_step import LockStep
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER, Stop
from hpcrowd.environment.units import UnitTable

#: What each engine holds beside its scalars, in the order in which the loop takes it.
ARRAYS = ("_sorted", "_heap", "_queue", "ends", "_expected", "_finished")

#: Room for what is over at one instant, at first.
FIRST_ROOM = 256


class CompiledLockStep(LockStep):
    """Advances compiled engines together; see the module's text.

    Parameters
    ----------
    engines, units, dispatch
        See :class:`~hpcrowd.environment.engine.lock_step.LockStep`; all compiled.
    """

    def __init__(
        self,
        engines: Sequence[CompiledEngine],
        units: UnitTable,
        dispatch: CompiledDispatch | None = None,
    ) -> None:
        super().__init__(engines, units, dispatch)
        self._compiled = engines
        self._every = np.stack([engine.scalars for engine in engines])
        for engine, scalars in zip(engines, self._every, strict=True):
            engine.stand_in(scalars)
        self._broker = BrokerArrays(engines) if dispatch is None else dispatch.arrays
        self._stacks: list[Int64s] = [np.zeros((len(engines), 0), np.int64) for _ in ARRAYS]
        self._active = np.zeros(len(engines), np.int64)
        self._dues = np.zeros(len(engines), np.int64)
        self._over = np.zeros(FIRST_ROOM, np.int64)
        self._units = np.zeros(FIRST_ROOM, np.int64)
        # Nobody's: where units are shared, no engine follows dependencies.
        self._links = np.zeros((1, 4), np.int64)
        self._edges = np.zeros((0, 2), np.int64)

    @property
    @override
    def events(self) -> int:
        return int(self._broker.scalars[G.TOTAL])

    @override
    def advance(self, halt: int = FOREVER, events: int = FOREVER) -> Stop:
        g, engines = self._broker.scalars, self._compiled
        allowed = min(self.events + events, FOREVER)
        while True:
            for engine in engines:
                engine._accept()
            self._stand_together()
            stop = G.advance_grid(
                self.units.jobs.matrix,
                self._every,
                *self._stacks,
                self._active,
                self._dues,
                g,
                self._over,
                self._units,
                self.units.remaining,
                self._links,
                self._edges,
                self.units.rows,
                *self._broker.of_kernel(),
                halt,
                allowed,
            )
            self.now = int(g[G.TIME])
            if self.dispatch is not None:
                self.dispatch.now = self.now
            if stop == Stop.FINISHED:
                self.finished = self._units[: g[G.UNITS]].tolist()
            elif stop == Stop.ROOM:
                self._enlarge(int(g[G.AT]))
                continue
            elif stop == Stop.PASS:
                engines[g[G.AT]].schedule()
                continue
            elif stop == Stop.CHANGE:
                changed: list[Engine] = []
                self._change(changed)
                for place, engine in enumerate(engines):
                    self._active[place] |= engine in changed
                if not self.finished:
                    continue
                stop = Stop.FINISHED
            return Stop(stop)

    def _enlarge(self, place: int) -> None:
        """Give more room to whatever array is full."""
        noted = self._broker.scalars[G.OVER] + self._every[place, S.FINISHED_COUNT]
        if noted >= len(self._over):
            self._over = np.append(self._over, np.zeros(noted, np.int64))
            self._units = np.zeros_like(self._over)
        if place >= 0:
            engine = self._compiled[place]
            engine._enlarge()
            self._broker.enlarge(len(engine.running) + len(engine.waiting))

    def _stand_together(self) -> None:
        """Bring into the stacks what engines hold elsewhere, because it grew or is new."""
        for place, name in enumerate(ARRAYS):
            stack = self._stacks[place]
            apart = [engine for engine in self._compiled if vars(engine)[name].base is not stack]
            if not apart:
                continue
            widest = max(vars(engine)[name].shape[-1] for engine in apart)
            if widest > stack.shape[-1]:
                apart = list(self._compiled)
                rows = vars(apart[0])[name].shape[:-1]
                stack = np.zeros((len(apart), *rows, max(widest, 2 * stack.shape[-1])), np.int64)
                self._stacks[place] = stack
            for engine in apart:
                mine = stack[engine.number]
                found = vars(engine)[name]
                mine[..., : found.shape[-1]] = found
                vars(engine)[name] = mine
